"""Kernel languages: one folder each with a guide for authors and the guest's code; the host's facts are here.

To add a language: its folder with `guide.md.j2`, `starter.py.j2`, `playbook.md` and `guest.py`, and its entry below.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forge.domain.source_finding import FindingKind
from forge.domain.target import PlatformName
from forge.domain.task import LanguageName
from forge.errors import UnknownName

_HERE = Path(__file__).parent
Need = Literal["torch", "triton", "g++", "the CUDA toolkit"]
"""Program or package that `forge doctor` looks for."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """The host's facts about a kernel language."""

    name: LanguageName
    title: str
    """Name of the language in a brief."""
    summary: str
    needs: tuple[Need, ...]
    """What must be installed to build its kernels, or to load them if nothing is built."""
    builds: bool
    """True if a builder compiles an artifact before the kernel is loaded."""
    times_on: tuple[PlatformName, ...]
    """Platforms on which its timings are evidence."""
    modules: tuple[str, ...] = ("torch",)
    """Modules that every candidate imports. Guests may be forked from a process that has already imported them."""
    stands_in_on: tuple[PlatformName, ...] = ()
    """Platforms on which an interpreter checks correctness. Results there count as simulated."""

    text: str | None = None
    """Name of what a string in kernel.py holds, if the builder compiles such a string."""
    device_code: bool = False
    """Whether that text holds kernels for a device, each marked `__global__`."""
    decorated: bool = False
    """Whether a kernel is a function that triton's decorator compiles."""
    library_calls: bool = False
    """True if a call of a library counts as a kernel, as in PyTorch. Elsewhere it is a way around writing one."""
    computes: str | None = None
    """Text in the first line of the function that computes, or in the line that writes its result."""
    tunes: bool = False
    """Whether a kernel may choose among configurations by timing them. The host then chooses instead."""
    forbids: frozenset[FindingKind] = frozenset({"network", "processes", "frames"})
    """Kinds of findings that are refused: one such place in the sources is enough. Kinds that an honest kernel may
    need are only listed in the report."""

    @property
    def guest_file(self) -> Path:
        """Path of the module that is copied into the sandbox as `guest/language.py`."""
        return _HERE / self.name / "guest.py"

    @property
    def guide_file(self) -> Path:
        """Path of the guide for authors, a jinja2 template."""
        return _HERE / self.name / "guide.md.j2"

    @property
    def playbook_file(self) -> Path:
        """Path of the skill `playbook.<name>`, which every plan for the language has."""
        return _HERE / self.name / "playbook.md"

    @property
    def own_modules(self) -> frozenset[str]:
        """Packages whose import shows that a kernel is in this language."""
        return frozenset(module.partition(".")[0] for module in self.modules) - {"torch"}


LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language(
            name="cpp",
            title="C++",
            summary='C++ for the host processor: extern "C" through ctypes, or torch\'s load_inline',
            needs=("torch", "g++"),
            builds=True,
            times_on=("cpu",),
            text="C++",
            computes='extern "C"',
        ),
        Language(
            name="cuda",
            title="CUDA C++",
            summary='CUDA C++ for an NVIDIA GPU: extern "C" launchers through ctypes, or torch\'s load_inline',
            needs=("torch", "the CUDA toolkit"),
            builds=True,
            times_on=("cuda",),
            text="CUDA",
            device_code=True,
            computes="__global__",
        ),
        Language(
            name="triton",
            title="Triton",
            summary="Triton for a GPU; its interpreter checks correctness on a CPU",
            needs=("torch", "triton"),
            builds=False,
            modules=("torch", "triton", "triton.language"),
            times_on=("cuda",),
            stands_in_on=("cpu",),
            decorated=True,
            computes="tl.store(",
            tunes=True,
        ),
        Language(
            name="torch",
            title="PyTorch",
            summary="PyTorch operators in Python",
            needs=("torch",),
            builds=False,
            times_on=("cpu", "cuda"),
            library_calls=True,
        ),
    )
}


def find_language(untrusted_name: str) -> Language:
    """Return the language called `untrusted_name`, or raise UnknownName."""
    language = LANGUAGES.get(untrusted_name)
    if language is None:
        raise UnknownName("language", untrusted_name, list(LANGUAGES))
    return language
