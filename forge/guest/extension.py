"""Runs beside hostile code.

Replaces torch's `load_inline` and `load`: built once in the builder, ready-made elsewhere.
"""

import functools
import importlib
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

NO_EXECUTABLE_STACK = ("-Wl,-z,noexecstack",) if sys.platform == "linux" else ()
"""Linker's flag on Linux against an executable stack. Otherwise a loaded object could make the main thread's stack
executable for good."""

FOLDER = "TORCH_EXTENSIONS_DIR"
"""Environment variable that names torch's folder for extensions."""
_FOLDER_AT_START = os.environ.get(FOLDER)


def build(candidate: Path, scratch: Path, *, flags: Sequence[str]) -> list[Path]:
    """Import kernel.py, which builds an extension, with the host's flags after its own; return the shared objects."""
    _add([*flags, *NO_EXECUTABLE_STACK])
    importlib.import_module(".load", __package__).load_module(str(candidate / "kernel.py"), "kernel")
    return sorted((scratch / "torch_extensions").rglob("*.so"))


def use_prebuilt(directory: Path) -> None:
    """Let `load_inline` and `load` return the module that lies beside kernel.py."""
    from torch.utils import cpp_extension

    def load_prebuilt(name: str, *_: object, is_python_module: bool = True, **__: object) -> ModuleType:
        module: ModuleType = cpp_extension._import_module_from_library(name, str(directory), is_python_module)
        return module

    cpp_extension.load_inline = load_prebuilt
    cpp_extension.load = load_prebuilt


def _add(flags: Sequence[str]) -> None:
    quoted = [shlex.quote(flag) for flag in flags]  # these pass through a shell
    from torch.utils import cpp_extension

    for name in ("load_inline", "load"):
        setattr(cpp_extension, name, functools.partial(_load_with, getattr(cpp_extension, name), quoted))


def _load_with(
    load: Callable[..., ModuleType], flags: list[str], *arguments: object, **options: object
) -> ModuleType:
    for option in ("extra_cflags", "extra_ldflags"):
        given = options.get(option)
        options[option] = [*(given if isinstance(given, list | tuple) else ()), *flags]
    options.pop("build_directory", None)  # the shared objects are looked for in the host's folder alone
    if _FOLDER_AT_START is not None:
        os.environ[FOLDER] = _FOLDER_AT_START
    return load(*arguments, **options)
