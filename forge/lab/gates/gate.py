"""One question that is put to a loaded candidate."""

from collections.abc import Callable
from dataclasses import dataclass

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Finding


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One question put to a loaded candidate."""

    name: str
    examine: Callable[[LoadedKernel], Finding]
    one_call_shows_it: bool = False
    """Whether a failing call is wrong by itself, so that a smaller one can be looked for. Otherwise calls before
    it may have made it wrong, or the places of its operands."""
    runs_early: bool = False
    """Whether it is asked before other guests are started beside the gates. Most refusals come from such gates."""
