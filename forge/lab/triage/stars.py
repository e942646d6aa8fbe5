"""What a name may come from where modules are imported whole: `from module import *`, any number of times."""

from forge.lab.triage.rules import COMPUTE, kind_of, known_below

_UNKNOWN = "_"
"""No entry of the rules ends in it."""


class Stars:
    """Modules imported whole, in order. A name is found at once, however many modules there are."""

    def __init__(self) -> None:
        self._modules: dict[str, int] = {}
        self._known: dict[str, str] = {}
        """Name -> the first module below which the rules name it."""
        self._any: str | None = None
        """The first module of which every name means something."""

    def __bool__(self) -> bool:
        return bool(self._modules)

    def add(self, module: str) -> None:
        """Take one more import; the first of a module counts."""
        if module in self._modules:
            return
        self._modules[module] = len(self._modules)
        for name in known_below(module):
            self._known.setdefault(name, module)
        if self._any is None and kind_of(f"{module}.{_UNKNOWN}") is not None:
            self._any = module

    def find(self, name: str, builtin: str | None) -> str | None:
        """The first dotted name that means something; a builtin gives way only to one that the rules name."""
        found = [self._known[name]] if name in self._known else []
        if builtin is None:
            found += [self._any] if self._any is not None else []
            found += ["torch"] if name in COMPUTE and "torch" in self._modules else []
        return f"{min(found, key=self._modules.__getitem__)}.{name}" if found else builtin
