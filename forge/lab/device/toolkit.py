"""Finds the CUDA toolkit of this machine, and the settings of a builder; compiling for a GPU doesn't need one."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from forge.errors import EnvironmentUnfit
from forge.sandbox.runtime import runtime_binds

_USUAL_PLACE = Path("/usr/local/cuda")
PROGRAMS = str(_USUAL_PLACE / "bin")
"""Folder in which the toolkit's programs usually are, if they aren't on the search path."""
_HEADER = "include/cuda_runtime.h"
_ARCH = re.compile(r"sm_(\d+)(\d)")
_SPECIFIC_SINCE = 9
"""Compute capability from which on code can be for one architecture alone ("sm_90a"), with instructions that the
portable kind lacks: wgmma, setmaxnreg (PTX ISA, `.target`)."""


def toolkit() -> Path:
    """Return the toolkit's directory, as CUDA_HOME.

    Raise EnvironmentUnfit if there is none that a builder can see.
    """
    found = shutil.which("nvcc")
    places = [_USUAL_PLACE, *([Path(found).resolve().parents[1]] if found else [])]
    for place in places:
        if (place / "bin" / "nvcc").is_file() and (place / _HEADER).is_file():
            return _visible(place)
    raise EnvironmentUnfit(
        f"no CUDA toolkit here: expected bin/nvcc and {_HEADER} in {_USUAL_PLACE}, or nvcc on the path",
        hint="install the CUDA toolkit; a GPU isn't needed to build, only to verify",
    )


def has_toolkit() -> bool:
    """Return whether CUDA code can be built on this machine."""
    try:
        toolkit()
    except EnvironmentUnfit:
        return False
    return True


def _visible(place: Path) -> Path:
    real = place.resolve()
    if not any(real.is_relative_to(bind.source.resolve()) for bind in runtime_binds()):
        raise EnvironmentUnfit(
            f"the CUDA toolkit in {str(real)!r} isn't seen by a builder: expected it below /usr",
            hint="install it to /usr/local/cuda",
        )
    return real


def gpu_code(arch: str) -> str:
    """Return the code to compile for: sm_90 -> sm_90a, sm_89 -> sm_89.

    Raise EnvironmentUnfit if the target is no GPU.
    """
    return f"sm_{''.join(_numbers(arch))}{_suffix(arch)}"


def build_environment(arch: str) -> Mapping[str, str]:
    """Return the variables with which nvcc is found, and torch's extensions are built for the same code."""
    major, minor = _numbers(arch)
    return {"CUDA_HOME": str(toolkit()), "TORCH_CUDA_ARCH_LIST": f"{major}.{minor}{_suffix(arch)}"}


def _suffix(arch: str) -> str:
    return "a" if int(_numbers(arch)[0]) >= _SPECIFIC_SINCE else ""


def _numbers(arch: str) -> tuple[str, str]:
    found = _ARCH.fullmatch(arch)
    if found is None:
        raise EnvironmentUnfit(f"CUDA code can't be built for the target {arch!r}: expected a GPU's, such as 'sm_90'")
    return found[1], found[2]
