"""A user's own operation: a reference file, of which Forge knows what it inferred and nothing more.

Sizes vary only if the reference was seen to run at others: the task holds those out. Values vary only within the
range of the reference's own inputs. No one has declared what answers should be beyond that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import Contract
from forge.lab.definitions.contract_file import CONTRACT_FILE, contract_file
from forge.lab.definitions.definition import Declaration, Shape
from forge.lab.inputs import changes
from forge.operations.operation import Operation
from forge.sandbox.session import GuestFunction

if TYPE_CHECKING:
    from forge.lab.observed import Case

SWAPS = 2
"""Number of swaps in one random operand, and in one random weight, besides a swap in each of them at once. Chosen;
each costs one call for each group of operands."""
KEPT_BYTES, FEWEST_KEPT = 2**24, 5
"""Bytes of the operands of calls whose outputs are kept, at most, and the number of such calls, at least. A guest
computes each right answer, so more would take long."""


@dataclass(frozen=True)
class ReferenceFile:
    """The definition of one own operation."""

    operation: Operation
    contract: Contract
    declares: frozenset[Declaration] = frozenset()
    runs_here: bool = False
    allows_libraries: bool = True
    outputs_apart: bool = False
    wrap: Literal["none", "module"] = "module"

    @property
    def records_gradients(self) -> bool:
        """Whether calls may record gradients: if there are no weights."""
        return not self.contract.weights

    @property
    def files(self) -> Mapping[str, bytes]:
        """The contract, by which a guest makes the module and passes its operands."""
        return {CONTRACT_FILE: contract_file(self.contract)}

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the reference's state dict."""
        return tuple(name for weight in self.contract.weights for name in weight.names)

    @property
    def set_bytes(self) -> int:
        """Bytes of all operands and results of one call, with results in fp64."""
        return self.contract.set_bytes

    def reference(self, *, compiled: bool = False) -> GuestFunction:
        """Return the file's model or function, called as the contract describes."""
        wrap = "module_compile" if compiled else "module"
        return GuestFunction("reference.py", self.contract.entry, wrap=wrap)

    def shapes(self, public: Shape, *_wanted: Shape) -> tuple[Shape, ...]:
        """Return the public shape: the reference may fail at sizes at which it wasn't seen to run."""
        return (public,)

    def kinds(self, wanted: tuple[InputKind, ...]) -> tuple[InputKind, ...]:
        """Return normal values and those kinds at which candidates are judged by the reference."""
        return tuple(kind for kind in wanted if kind == "normal" or kind in self.contract.kinds)

    @property
    def finite_kinds(self) -> tuple[InputKind, ...]:
        """Kinds at which the reference is finite, and errs too much to judge by."""
        return self.contract.finite_kinds

    def kept_calls(self, wanted: int, call_bytes: int) -> int:
        """Return as many calls as `KEPT_BYTES` hold, but at least a few."""
        return min(wanted, max(FEWEST_KEPT, KEPT_BYTES // max(1, call_bytes)))

    @property
    def continuous(self) -> frozenset[int]:
        """Positions of the continuous arguments, and of the weights that are parameters in floats."""
        count = len(self.contract.tensors)
        arguments = (place for place, one in enumerate(self.contract.tensors) if one.continuous)
        weights = set(range(count, count + len(self.contract.weights))) - self.contract.still
        return frozenset((*arguments, *weights))

    def related(self, draw: Callable[[], Case], rng: random.Random) -> list[Case]:
        """Return questions in which each operand alone is new, then the weights, then a few values within operands.

        Operands that fit only to each other are new together. Swaps go over a whole operand: sums, ends and extremes
        stay as they were.
        """
        first, other = draw(), draw()
        places, count = range(len(first.inputs)), len(self.contract.tensors)
        arguments, weights = places[:count], places[count:]
        groups = [sorted(set(group) - self.contract.still) for group in (arguments, weights)]
        return [
            first,
            other,
            *(changes.taken_over(first, other, group) for group in self.contract.groups),
            changes.taken_over(first, other, weights),
            *(_with_swaps(first, group, rng) for group in groups),
            *(_with_swaps(first, [rng.choice(group)], rng) for group in groups * SWAPS if group),
            first,
            changes.low_bits(first, sorted(self.continuous)),
            first,
        ]


def _with_swaps(case: Case, places: Sequence[int], rng: random.Random) -> Case:
    for place in places:
        case = changes.swap_anywhere(case, place, rng)
    return case
