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
