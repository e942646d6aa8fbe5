"""Kernel languages: one folder each with a guide for authors and the guest's code; the host's facts are here.

To add a language: its folder (`guide.md.j2`, `starter.py.j2`, `guest.py`) and its line in `LANGUAGES`.
"""

from dataclasses import dataclass
from pathlib import Path

from forge.domain.source_finding import FindingKind
from forge.domain.target import PlatformName
from forge.domain.task import LanguageName
from forge.errors import UnknownName

_HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Language:
    """The host's facts about a kernel language."""

    name: LanguageName
    summary: str
    builds: bool
    """True if a builder compiles an artifact before the kernel is loaded."""
    times_on: tuple[PlatformName, ...]
    """Platforms on which its timings are evidence."""
    modules: tuple[str, ...] = ("torch",)
    """Modules that every candidate imports. Guests may be forked from a process that has already imported them."""
    stands_in_on: tuple[PlatformName, ...] = ()
    """Platforms on which an interpreter checks correctness. Results there count as simulated."""

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


LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language(
            name="cpp",
            summary='C++ for the host processor: extern "C" through ctypes, or torch\'s load_inline',
            builds=True,
            times_on=("cpu",),
        ),
        Language(
            name="cuda",
            summary='CUDA C++ for an NVIDIA GPU: extern "C" launchers through ctypes, or torch\'s load_inline',
            builds=True,
            times_on=("cuda",),
        ),
        Language(
            name="triton",
            summary="Triton for a GPU; its interpreter checks correctness on a CPU",
            builds=False,
            modules=("torch", "triton", "triton.language"),
            times_on=("cuda",),
            stands_in_on=("cpu",),
            tunes=True,
        ),
        Language(name="torch", summary="PyTorch operators in Python", builds=False, times_on=("cpu", "cuda")),
    )
}


def find_language(untrusted_name: str) -> Language:
    """Return the language called `untrusted_name`, or raise UnknownName."""
    language = LANGUAGES.get(untrusted_name)
    if language is None:
        raise UnknownName("language", untrusted_name, list(LANGUAGES))
    return language
