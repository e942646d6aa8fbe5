"""Runs beside hostile code. Imports a module from the staged files and finds the function to call."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

Function = Callable[..., object]


class NoEntryPointError(Exception):
    """The module has no callable of that name."""


def load_module(path: str, name: str) -> ModuleType:
    """Execute the file at `path` as the module `name`."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NoEntryPointError(f"{path} can't be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_function(path: str, module_name: str, entry_point: str, *, wrap: str) -> Function:
    """Import a module and return its function.

    `wrap` says what to return: the function itself, one compiled by torch, a plan's launcher, or a module under a
    contract. With a contract beside the file, the entry point may be a class of modules.
    """
    if wrap == "plan":
        from .plan_launcher import PlanFunction

        return PlanFunction.read(Path(path))
    module = sys.modules.get(module_name) or load_module(path, module_name)
    function = getattr(module, entry_point, None)
    if not callable(function):
        raise NoEntryPointError(f"{path} has no function {entry_point!r}")
    if wrap.startswith("module"):
        from .module import wrapped

        return wrapped(vars(module), function, Path(path).parent, wrap=wrap)
    if wrap.startswith("compile"):
        from .module import compiled

        function = compiled(function, wrap)
    found: Function = function
    return found
