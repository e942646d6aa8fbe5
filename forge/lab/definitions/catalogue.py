"""An operation of the catalogue: Forge's own code, defined at every size, with declared answers to special values."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from forge.domain.input_kind import REFERENCE_KINDS, InputKind
from forge.lab.definitions.definition import Declaration, Shape
from forge.lab.inputs import changes
from forge.operations.operation import Operation
from forge.sandbox.session import GuestFunction

if TYPE_CHECKING:
    from forge.lab.observed import Case

PLACES, MORE_PLACES, COLUMNS = 4, 2, 3
"""Numbers of changes inside rows. Each operand gets one swap in one row; operands with rows get at least
`MORE_PLACES` more, at least `PLACES` in all. `COLUMNS` questions swap two whole columns in all operands with rows."""


@dataclass(frozen=True)
class Catalogue:
    """The definition of one operation of the catalogue."""

    operation: Operation
    declares: frozenset[Declaration] = frozenset(get_args(Declaration))
    records_gradients: bool = True
    runs_here: bool = True
    allows_libraries: bool = False
    outputs_apart: bool = True
    wrap: Literal["none", "module"] = "none"
    files: Mapping[str, bytes] = field(default_factory=dict)
    state_names: tuple[str, ...] = ()
    set_bytes: int = 0
    finite_kinds: tuple[InputKind, ...] = ()

    def reference(self, *, compiled: bool = False) -> GuestFunction:
        """Return the reference's own function."""
        name = self.operation.reference.__name__
        return GuestFunction("reference.py", name, wrap="compile" if compiled else "none")

    def shapes(self, _public: Shape, *wanted: Shape) -> tuple[Shape, ...]:
        """Return all shapes: each axis may have any size."""
        return wanted

    def kinds(self, wanted: tuple[InputKind, ...]) -> tuple[InputKind, ...]:
        """Return all kinds but those for reference files alone: operands say themselves which numbers they have."""
        return tuple(kind for kind in wanted if kind not in REFERENCE_KINDS)

    def kept_calls(self, wanted: int, _call_bytes: int) -> int:
        """Return all calls: the oracle is quick, and the arena's size is the only limit."""
        return wanted

    @property
    def continuous(self) -> frozenset[int]:
        """Positions of the inputs whose values follow the workload's kind, such as `normal`."""
        return frozenset(place for place, spec in enumerate(self.operation.inputs) if spec.follows_kind)

    def related(self, draw: Callable[[], Case], rng: random.Random) -> list[Case]:
        """Return fresh values, changed low bits, new weights, new scalars, and swaps within rows.

        Coarse values add up without rounding errors in any order, so a swap leaves every bit of a row's sum as it
        was.
        """
        operation = self.operation
        first, coarse = draw(), changes.coarse(operation, draw())
        rows = changes.with_rows(operation)

        def swaps(case: Case) -> list[Case]:
            return [changes.swap_in_row(case, place, rng) for place in _swapped(len(operation.inputs), rows, rng)]

        return [
            draw(),
            first,
            changes.low_bits(first, sorted(self.continuous)),
            changes.flipped_weights(operation, first),
            changes.other_scalars(first),
            *swaps(first),
            *(changes.swap_columns(first, rows, rng) for _ in range(COLUMNS)),
            coarse,
            *swaps(coarse),
            first,
        ]


def _swapped(operands: int, rows: list[int], rng: random.Random) -> list[int]:
    """Return the positions of the operands to change: each once, those with rows more often."""
    return [*range(operands), *rng.choices(rows, k=max(MORE_PLACES, PLACES - operands))]
