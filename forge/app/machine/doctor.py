"""Reports what this machine can do, and what it lacks."""

import shutil
import sqlite3
import sys
from dataclasses import asdict

from forge import __version__
from forge.app.machine.chosen_device import chosen_device
from forge.domain.device import Device
from forge.errors import EnvironmentUnfit
from forge.lab.device.toolkit import has_toolkit
from forge.languages import LANGUAGES, Language, Need
from forge.platforms import PLATFORMS
from forge.platforms.capture import capture_environment
from forge.platforms.cuda import devices
from forge.platforms.nvml import sample
from forge.sandbox.isolation import Level
from forge.sandbox.isolation_here import isolation
from forge.sandbox.isolation_report import Lack, ladder
from forge.sandbox.memory_trial import WHAT, try_guest_memory

SQLITE_FIXED = (3, 51, 3)
"""Oldest version of SQLite without a fault that may corrupt a write-ahead log at a checkpoint
(sqlite.org/wal.html)."""


def examine_machine() -> dict[str, object]:
    """Return platforms, languages, isolation, the steps that lead to it, and versions."""
    device = chosen_device()
    environment = capture_environment(forge_version=__version__, forge_commit=None, device=device)
    wall = isolation()
    memory = _guest_memory(wall.level)
    present, reads = _present(environment.torch, environment.triton), memory["readable"] is not False
    return {
        "forge": __version__,
        "python": sys.version.split()[0],
        "torch": environment.torch,
        "triton": environment.triton,
        "compiler": environment.compiler,
        "sqlite": sqlite3.sqlite_version,
        "processor": f"{environment.cpu_model}, {environment.cpu_cores} cores",
        "abi_key": environment.abi_key,
        "platforms": {
            platform.name: {
                "available": platform.available(),
                "gpu": gpu.name if (gpu := platform.gpu()) else None,
            }
            for platform in PLATFORMS.values()
        },
        "devices": [
            {**one.model_dump(mode="json"), "chosen": one == device, "state": _state(one)} for one in devices()
        ],
        "languages": {
            language.name: language_here(
                language, present=present, gpu=environment.gpu is not None, reads_guests=reads
            )
            for language in LANGUAGES.values()
        },
        "isolation": wall.model_dump(mode="json"),
        "guest_memory": memory,
        "ladder": [asdict(step) for step in ladder()],
        "warnings": _warnings(wall.level),
    }


def _guest_memory(level: Level) -> dict[str, object]:
    """Return whether the host can read its guests' memory, which timing on a processor needs, or why it can't."""
    try:
        lack = try_guest_memory(level)
    except EnvironmentUnfit as error:
        lack = Lack(WHAT, error.message, error.hint or "run forge doctor again")
    if lack is not None:
        return {"readable": False, **asdict(lack)}
    return {"readable": None if level == "none" else True}


def _state(device: Device) -> dict[str, object] | None:
    state = sample(device)
    return state.model_dump(mode="json") if state else None


def language_here(
    language: Language, *, present: frozenset[Need], gpu: bool, reads_guests: bool = True
) -> dict[str, object]:
    """Return what can be done here with a language's kernels: build, verify and time, each by itself.

    `reads_guests` says whether the host can read its guests' memory, which timing on a processor needs. `ready` says
    that kernels can be verified here, if only by an interpreter.
    """
    lacks: list[str] = [name for name in language.needs if name not in present]
    here = {"cpu": True, "cuda": gpu}
    targets = [] if lacks else [name for name in language.times_on if here[name]]
    stands_in = [] if lacks or targets else list(language.stands_in_on)
    if not gpu and "cuda" in language.times_on:
        lacks.append("an NVIDIA GPU")
    builds = None if not language.builds else not set(lacks) & set(language.needs)
    return {
        "times_on": list(language.times_on),
        "ready": bool(targets or stands_in),
        "builds_here": builds,
        "verifies_here_on": targets,
        "simulates_here_on": stands_in,
        "times_here_on": [name for name in targets if name != "cpu" or reads_guests],
        "lacks": lacks,
    }


def _present(torch: str | None, triton: str | None) -> frozenset[Need]:
    found: dict[Need, bool] = {
        "torch": torch is not None,
        "triton": triton is not None,
        "g++": shutil.which("g++") is not None,
        "the CUDA toolkit": has_toolkit(),
    }
    return frozenset(name for name, there in found.items() if there)


def _warnings(level: str) -> list[str]:
    warnings = []
    if level == "none":
        warnings.append("no isolation can be built here: candidates can be judged, but none can be promoted")
    if sqlite3.sqlite_version_info < SQLITE_FIXED:
        warnings.append(
            f"SQLite {sqlite3.sqlite_version} has a rare write-ahead-log fault, fixed in 3.51.3; "
            "Forge's writers and checkpoints hold one lock, which keeps them out of its way"
        )
    if shutil.which("g++") is None:
        warnings.append("no g++: C++ candidates can't be built, and torch.compile can't be a baseline")
    return warnings
