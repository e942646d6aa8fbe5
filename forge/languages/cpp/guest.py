"""Runs beside hostile code. C++: built once in the builder, loaded ready-made everywhere else.

Two conventions. `extern "C"` text in a string constant is compiled to `libkernel.so`, which stands beside kernel.py
for `ctypes.CDLL`. Or kernel.py calls `torch.utils.cpp_extension.load_inline`, unmodified: the builder runs it
with a private cache, and in the guest the same call returns the module that was built.
"""

import importlib
import subprocess
from pathlib import Path

PLAIN_LIBRARY = "libkernel.so"
"""What C++ text is compiled to; any other shared object is a Python extension."""


def prepare(body: dict[str, object]) -> None:
    """Let `load_inline` and `load` return what the builder made; a plain `libkernel.so` needs nothing."""
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
