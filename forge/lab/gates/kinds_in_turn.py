"""Kinds of values that gates of shapes and of layouts ask in turn: kernels go another way at some sizes or addresses.

A way of its own may lack what only such values show: a row's maximum, an eps, a second pass, a mask, NaN, or a limit
of a type.
"""

from collections.abc import Iterator, Mapping

from forge.domain.input_kind import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.specials import has_answer, kinds_of

TELLING: tuple[InputKind, ...] = (
    *("large", "small", "offset_mean", "offset_operands", "rows_apart", "mixed"),
    *("tiny", "heavy_tails", "zero_rows", "ordered", "ties", "outside_range"),
    *("far", "overflowing", "beside_zero", "shifted_range"),
)
"""Kinds of values that are asked in turn, besides special ones. Chosen; the gate `scales` asks all kinds, at few
shapes."""


class KindsInTurn:
    """The kinds that an operation may be asked, each once before one comes again, in an order drawn each time."""

    def __init__(self, kernel: LoadedKernel) -> None:
        special = kinds_of(kernel) if "specials" in kernel.definition.declares else ()
        self._told = (*kernel.definition.kinds(TELLING), *special) or ("normal",)
        self._rng, self._width_axis = kernel.rng, kernel.operation.reduced_axis
        self._order = self._without_end()

    def at(self, shape: Mapping[str, int]) -> InputKind:
        """Return the kind whose turn it is at this shape."""
        kind = next(self._order)
        while not has_answer(kind, shape[self._width_axis]):
            kind = next(self._order)
        return kind

    def _without_end(self) -> Iterator[InputKind]:
        while True:
            yield from self._rng.sample(self._told, len(self._told))
