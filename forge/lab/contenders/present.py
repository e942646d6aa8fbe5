"""Tells which contenders of a job are on this machine, and why the others aren't."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from forge.contenders.description import ENTRY, CompileMode, why_not_applicable
from forge.contenders.discovery import ContenderCatalogue, Described
from forge.contenders.installed import Installed, find_installed
from forge.contenders.versions import within
from forge.domain.contender import Absence, ContenderAbsent, ContenderStanding, name_of
from forge.lab.calls.trusted import CACHE_FOLDER
from forge.lab.device.toolkit import build_environment, has_toolkit
from forge.lab.job import ContenderFile, Job
from forge.sandbox.runtime import runtime_binds
from forge.sandbox.session import GuestFunction

FILE = "contender.py"
"""Name of the staged file that defines a contender."""
SITE_FOLDERS = frozenset({"site-packages", "dist-packages"})
"""Names of folders that hold packages and nothing else. A package elsewhere isn't shown to a guest."""
_TUNED: Mapping[CompileMode, str] = {"max-autotune-no-cudagraphs": "_max_autotune"}
"""Mode of torch.compile -> end of the way in which a guest wraps the reference; see forge/guest/module.py."""


@dataclass(frozen=True, kw_only=True)
class PresentContender:
    """A contender that can be called on this machine."""

    id: str
    package: str
    version: str
    licence: str
    source: bytes | None
    """Python text of `contender.py`. None: the reference itself is compiled."""
    function: GuestFunction
    folder: Path | None = None
    """Folder of its package, if a guest doesn't see it anyway."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the contender as a baseline."""
        return name_of(self.id, self.version)


def look_up(
    job: Job, catalogue: ContenderCatalogue
) -> tuple[tuple[PresentContender, ...], tuple[ContenderStanding, ...]]:
    """Return the contenders that can be called, and a standing for each one that can't."""
    present: list[PresentContender] = [_of_user(job, one) for one in job.contender_files]
    absent: list[ContenderStanding] = []
    for described in catalogue.of(job.operation.name):
        found = _found(job, described)
        if isinstance(found, PresentContender):
            present.append(found)
        else:
            absent.append(found)
    absent += [
        ContenderStanding(
            contender=f"unreadable.entry_{number}",
            package=one.entry_point[:64] or "?",
            standing=ContenderAbsent(cause="unreadable", detail=one.detail[:500]),
        )
        for number, one in enumerate(catalogue.unreadable)
    ]
    return tuple(present), tuple(absent)


def _found(job: Job, described: Described) -> PresentContender | ContenderStanding:
    library, call = described.library, described.call
    installed = find_installed(library.package)
    why = why_not_applicable(call, job.dtype, job.shape, device=job.device, arch=job.arch)
    if why is not None:
        return _absent(described, installed, "not_applicable", why)
    if installed is None:
        return _absent(described, installed, "not_installed", f"no package {library.package!r} is installed here")
    if _plain(installed.version) is None or not within(installed.version, library.versions):
        detail = f"version {installed.version[:64]!r} of {library.package}: expected {library.versions}"
        return _absent(described, installed, "version", detail)
    if call.nvcc and not has_toolkit():
        return _absent(described, installed, "no_toolkit", "it is compiled by nvcc: no CUDA toolkit is here")
    folder = _folder_to_show(installed)
    return PresentContender(
        id=described.id,
        package=library.package,
        version=installed.version,
        licence=library.licence,
        source=None if call.compile_mode is not None else _source(call.call, folder),
        function=GuestFunction(FILE, ENTRY) if call.compile_mode is None else _compiled(job, call.compile_mode),
        folder=folder,
        environment=build_environment(job.arch) if call.nvcc else {},
    )


def _absent(described: Described, installed: Installed | None, cause: Absence, detail: str) -> ContenderStanding:
    return ContenderStanding(
        contender=described.id,
        package=described.library.package,
        version=_plain(installed.version) if installed is not None else None,
        licence=described.library.licence,
        standing=ContenderAbsent(cause=cause, detail=detail),
    )


def _plain(version: str) -> str | None:
    """Return a version as it may stand in a name; None if it has other characters."""
    allowed = version and len(version) <= 64 and version[0].isalnum() and version.isascii()
    return version if allowed and all(one.isalnum() or one in ".+!_-" for one in version) else None


def _folder_to_show(installed: Installed) -> Path | None:
    """Return the folder of packages that a guest has to be shown besides those that it sees; None for none."""
    folder = installed.folder
    if folder.name not in SITE_FOLDERS or any(folder.is_relative_to(bind.source) for bind in runtime_binds()):
        return None
    return folder


def _source(text: str, folder: Path | None) -> bytes:
    """Return the staged file: the description's text, which finds its package first."""
    prelude = "" if folder is None else f"import sys\n\nsys.path.append({str(folder)!r})\n"
    return f"{prelude}{text}".encode()


def _compiled(job: Job, mode: CompileMode) -> GuestFunction:
    plain = job.definition.reference(compiled=True)
    return replace(plain, wrap=f"{plain.wrap}{_TUNED[mode]}")


def _of_user(job: Job, file: ContenderFile) -> PresentContender:
    contender, _, version = file.described.name.removeprefix("contender:").partition("@")
    return PresentContender(
        id=contender,
        package="own",
        version=version,
        licence="",
        source=file.source,
        function=GuestFunction(FILE, file.described.entry, wrap=job.definition.wrap),
        environment={"TORCH_EXTENSIONS_DIR": f"{CACHE_FOLDER}/torch_extensions"},
    )
