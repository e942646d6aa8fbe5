"""Runs beside hostile code. Builds C++ once in the builder, and loads the result everywhere else.

There are two conventions. `extern "C"` text in a string constant is compiled to `libkernel.so`, which lies beside
kernel.py for `ctypes.CDLL`. Or kernel.py calls `torch.utils.cpp_extension.load_inline`, unmodified. The builder runs
this call with a private cache, and in the guest it returns the built module.
"""

import importlib
import subprocess
import sys
from pathlib import Path

PLAIN_LIBRARY = "libkernel.so"
"""File to which C++ text is compiled; any other shared object is a Python extension."""

FAST_MATHS = ("-Ofast", "-ffast-math")
"""Flags that the linker isn't given. With them GCC up to 12 links `crtfastmath.o` into a shared object, which treats
subnormal numbers as zeros in the thread that loads it."""

NO_EXECUTABLE_STACK = ("-Wl,-z,noexecstack",) if sys.platform == "linux" else ()
"""Linker's flag on Linux against an executable stack. Otherwise a loaded object could make the main thread's stack
executable for good."""

OWN_NAMES, OWN_STATICS = (("-Wl,-Bsymbolic",), ("-fno-gnu-unique",)) if sys.platform == "linux" else ((), ())
"""Linux's flags of linker and compiler that bind an object to its own functions and variables. Otherwise those of an
object that was loaded before, such as another kernel, take the place of those with the same names. The second is for
static variables of inline functions and templates, which a process would have once for all objects."""


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
    """Compile and link in two steps, as a linker that sees fast maths adds code that changes the caller's thread."""
    text, compiled, target = scratch / "kernel.cpp", scratch / "kernel.o", scratch / PLAIN_LIBRARY
    text.write_text(source)
    linked = [flag for flag in flags if flag not in FAST_MATHS]
    for command in (
        [*flags, *OWN_STATICS, "-c", str(text), "-o", str(compiled)],
        [*linked, *NO_EXECUTABLE_STACK, *OWN_NAMES, "-shared", str(compiled), "-o", str(target)],
    ):
        subprocess.run(["/usr/bin/env", "g++", *command, "-fPIC"], check=True)
    return target
