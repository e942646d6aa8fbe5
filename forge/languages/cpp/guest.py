"""Runs beside hostile code. Builds C++ once in the builder, and loads the result everywhere else.

There are two conventions. `extern "C"` text in a string constant is compiled to `libkernel.so`, which lies beside
kernel.py for `ctypes.CDLL`. Or kernel.py calls `torch.utils.cpp_extension.load_inline`, unmodified. The builder runs
this call with a private cache, and in the guest it returns the built module.
"""

import importlib
import subprocess
from pathlib import Path

PLAIN_LIBRARY = "libkernel.so"
"""File to which C++ text is compiled; any other shared object is a Python extension."""


def prepare(body: dict[str, object]) -> None:
    """Let `load_inline` and `load` return the builder's result; a plain `libkernel.so` needs nothing."""
    directory = Path(str(body["candidate_directory"]))
    if any(path.name != PLAIN_LIBRARY for path in directory.glob("*.so")):
        importlib.import_module(".extension", __package__).use_prebuilt(directory)


def build(body: dict[str, object]) -> list[Path]:
    """Compile the candidate; return the shared objects."""
    scratch = Path(str(body["scratch_directory"]))
    source = body.get("source")
    flags = [str(flag) for flag in body["flags"]]  # type: ignore[attr-defined]  # the host's list
    if isinstance(source, str):
        return [_compile(source, flags, scratch)]
    extension = importlib.import_module(".extension", __package__)
    built: list[Path] = extension.build(Path(str(body["candidate_directory"])), scratch, flags=flags)
    return built


def _compile(source: str, flags: list[str], scratch: Path) -> Path:
    text, target = scratch / "kernel.cpp", scratch / PLAIN_LIBRARY
    text.write_text(source)
    subprocess.run(["/usr/bin/env", "g++", *flags, "-shared", "-fPIC", str(text), "-o", str(target)], check=True)
    return target
