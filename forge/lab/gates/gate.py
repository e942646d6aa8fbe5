"""Defines a gate: one question that is put to a loaded candidate."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.definitions.definition import Declaration
from forge.lab.finding import Finding

Question = Callable[[LoadedKernel], Finding]
"""Function that asks a loaded candidate, and returns what it found."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One question that is put to a loaded candidate."""

    name: str
    examine: Question
    further: tuple[Question, ...] = ()
    """Further parts of the question. Each part draws its own numbers, so that another guest may be asked it."""
    needs: frozenset[Declaration] = frozenset()
    """Declarations without which the question has no known answer; for an operation that lacks one it isn't asked."""
    one_call_shows_it: bool = False
    """Whether a failing call is wrong by itself, so that a smaller failing call can be searched. If False, earlier
    calls or the addresses of the operands may have caused the failure."""
    runs_early: bool = False
    """Whether the gate runs before other guests are started in parallel. Most refusals come from these gates."""
    runs_alone: bool = False
    """Whether the gate runs before others are asked beside it. It takes a second, and refuses many candidates."""
    own_guest: bool = False
    """Whether the candidate is loaded in a guest of its own for the gate, in which no call was made before."""
    beside: bool = False
    """Whether the gate is asked in guests of its own beside the others where the host's processors mostly wait, each
    part in one. Elsewhere it is asked in the guest of the gates before. It takes seconds."""

    @property
    def parts(self) -> tuple["Gate", ...]:
        """The parts of the question as gates, each with a name from which its numbers are drawn."""
        further = (
            replace(self, name=f"{self.name}, part {place}", examine=examine, further=())
            for place, examine in enumerate(self.further, start=2)
        )
        return replace(self, further=()), *further
