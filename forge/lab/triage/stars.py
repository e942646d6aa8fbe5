"""Resolves names in files that import modules whole: `from module import *`, any number of times."""

from forge.lab.triage.rules import COMPUTE, kind_of, known_below

_UNKNOWN = "_"
"""Name that no entry of the rules ends in."""


class Stars:
    """Modules imported whole, in order. Finding a name takes the same time for any number of modules."""

    def __init__(self) -> None:
        self._modules: dict[str, int] = {}
        self._known: dict[str, str] = {}
        """First module below which the rules have an entry, by name."""
        self._any: str | None = None
        """First module for which every name counts."""

    def __bool__(self) -> bool:
        return bool(self._modules)

    def add(self, module: str) -> None:
        """Add one more import; the first import of a module counts."""
        if module in self._modules:
            return
        self._modules[module] = len(self._modules)
        for name in known_below(module):
            self._known.setdefault(name, module)
        if self._any is None and kind_of(f"{module}.{_UNKNOWN}") is not None:
            self._any = module

    def find(self, name: str, builtin: str | None) -> str | None:
        """Return the first dotted name with a meaning; a builtin is replaced only by a name with its own rule."""
        found = [self._known[name]] if name in self._known else []
        if builtin is None:
            found += [self._any] if self._any is not None else []
            found += ["torch"] if name in COMPUTE and "torch" in self._modules else []
        return f"{min(found, key=self._modules.__getitem__)}.{name}" if found else builtin
