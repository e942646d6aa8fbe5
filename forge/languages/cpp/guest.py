"""Runs beside hostile code. C++: built once in the builder, loaded ready-made everywhere else.

Two conventions. `extern "C"` text in a string constant is compiled to `libkernel.so`, which stands beside kernel.py
for `ctypes.CDLL`. Or kernel.py calls `torch.utils.cpp_extension.load_inline`, unmodified: the builder runs it
with a private cache, and in the guest the same call returns the module that was built.
"""

import functools
import importlib
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

PLAIN_LIBRARY = "libkernel.so"
"""What C++ text is compiled to; any other shared object is a Python extension."""


def prepare(body: dict[str, object]) -> None:
    """Let `load_inline` and `load` return what the builder made; a plain `libkernel.so` needs nothing."""
    directory = Path(str(body["candidate_directory"]))
    if all(path.name == PLAIN_LIBRARY for path in directory.glob("*.so")):
        return
    from torch.utils import cpp_extension

    def load_prebuilt(name: str, *_: object, is_python_module: bool = True, **__: object) -> ModuleType:
        module: ModuleType = cpp_extension._import_module_from_library(name, str(directory), is_python_module)
        return module

    cpp_extension.load_inline = load_prebuilt
    cpp_extension.load = load_prebuilt


def build(body: dict[str, object]) -> list[Path]:
    """Compile the candidate; return the shared objects."""
    directory = Path(str(body["candidate_directory"]))
    scratch = Path(str(body["scratch_directory"]))
    source = body.get("cpp_source")
    flags = [str(flag) for flag in body["cpp_flags"]]  # type: ignore[attr-defined]  # the host's list
    if isinstance(source, str):
        return [_compile(source, flags, scratch)]
    if flags:
        _add_to_extensions(flags)
    importlib.import_module(".load", __package__).load_module(str(directory / "kernel.py"), "kernel")
    return sorted((scratch / "torch_extensions").rglob("*.so"))


def _add_to_extensions(flags: list[str]) -> None:
    """Have `load_inline` and `load` use the host's flags after the candidate's; these pass through a shell."""
    flags = [shlex.quote(flag) for flag in flags]
    from torch.utils import cpp_extension

    for name in ("load_inline", "load"):
        setattr(cpp_extension, name, functools.partial(_load_with, getattr(cpp_extension, name), flags))


def _load_with(
    load: Callable[..., ModuleType], flags: list[str], *arguments: object, **options: object
) -> ModuleType:
    for option in ("extra_cflags", "extra_ldflags"):
        given = options.get(option)
        options[option] = [*(given if isinstance(given, list | tuple) else ()), *flags]
    return load(*arguments, **options)


def _compile(source: str, flags: list[str], scratch: Path) -> Path:
    text, target = scratch / "kernel.cpp", scratch / PLAIN_LIBRARY
    text.write_text(source)
    subprocess.run(["/usr/bin/env", "g++", *flags, "-shared", "-fPIC", str(text), "-o", str(target)], check=True)
    return target
