"""Defines what the guests of baselines run, and where torch.compile's results for them are kept.

The folder lives as long as this process, and no candidate ever sees it.
"""

import atexit
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from forge.domain.policy import MeasuredBaseline
from forge.lab.calls.trusted import (
    CACHE_FOLDER,
    COMPILER_ENVIRONMENT,
    COMPILER_MODULES,
    GPU_COMPILER_ENVIRONMENT,
    trusted_program,
)
from forge.lab.job import Job
from forge.languages import LANGUAGES
from forge.operations import reference_source, vendor_source
from forge.sandbox.folders import HeldFolder
from forge.sandbox.launch import Bind
from forge.sandbox.session import GuestFunction
from forge.sandbox.stage import Program

COMPILED: set[tuple[object, ...]] = set()
"""Keys of the baselines that this process has compiled; see `compiled_for`."""
_FOLDERS = "forge-baseline-"


def baseline_function(job: Job, kind: MeasuredBaseline) -> GuestFunction:
    """Return the file of a baseline, and how it is wrapped."""
    operation = job.operation
    if kind == "vendor" and operation.vendor is not None:
        return GuestFunction("vendor.py", operation.vendor.__name__)
    return job.definition.reference(compiled=kind == "compile")


def baseline_program(job: Job, compiled: Path, extra: Mapping[str, bytes] | None = None) -> Program:
    """Return the program of a baselines' guest; `compiled` is the folder for torch.compile's results."""
    kept = (Bind(compiled, CACHE_FOLDER, writable=True),)
    files = {**reference_files(job), **(extra or {})}
    on_gpu = job.device == "cuda"
    if on_gpu and job.definition.runs_here:
        return trusted_program(job, files, binds=kept)
    return Program(
        language=LANGUAGES["torch"],
        files=files,
        environment=GPU_COMPILER_ENVIRONMENT if on_gpu else COMPILER_ENVIRONMENT,
        binds=kept,
        device=job.device,
        gpu=job.gpu,
        warm=on_gpu,
        modules=COMPILER_MODULES if on_gpu else (),
    )


def reference_files(job: Job) -> dict[str, bytes]:
    """Return the reference with the files beside it, and the vendor's operator if there is one."""
    files = {"reference.py": reference_source(job.operation).encode(), **job.definition.files}
    vendor = vendor_source(job.operation)
    return files if vendor is None else {**files, "vendor.py": vendor.encode()}


def compiled_folder(job: Job) -> Path:
    """Return the folder for what torch.compile leaves for a job's baselines.

    A reference file is foreign code: no other baseline may load its results. So each operation has a folder of its
    own. On a GPU every guest gets a copy of it, which stays small.
    """
    return cache_folder(f"catalogue {job.operation.name}" if job.definition.runs_here else job.operation.name)


@cache
def cache_folder(_whose: str) -> Path:
    """Return the folder for what compilers leave for the code of one origin; it is empty at first."""
    outer = HeldFolder(_FOLDERS)
    atexit.register(outer.remove)
    inside = outer.path / "inductor"
    inside.mkdir(mode=0o777)
    inside.chmod(0o777)
    return inside


@contextmanager
def compiled_copy(kept: Path) -> Iterator[Path]:
    """Copy what was compiled so far into the folder `kept`, for one guest alone.

    Each process tunes some of it again and writes it down. Guests in PID namespaces of their own that start together
    choose the same file names. A reference file's guest can write there too, so links and special files aren't
    copied.
    """
    outer = HeldFolder(_FOLDERS)
    try:
        inside = outer.path / "inductor"
        copy_plain(kept, inside)
        yield inside
    finally:
        outer.remove()


def copy_plain(kept: Path, target: Path) -> None:
    """Copy the plain files and folders of a folder into another that doesn't exist or is empty."""
    shutil.copytree(kept, target, ignore=_not_plain, dirs_exist_ok=True)
    for path in (target, *target.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


def _not_plain(folder: str, names: list[str]) -> set[str]:
    """Return all names that aren't plain files or folders: links, pipes, devices."""
    modes = {name: os.lstat(Path(folder, name)).st_mode for name in names}
    return {name for name, mode in modes.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))}


def compiled_for(job: Job) -> tuple[object, ...]:
    """Return the key of a compiled baseline; the same key again needs no compilation."""
    return (job.operation.name, job.dtype, tuple(sorted(job.shape.items())), job.baselines, job.device)
