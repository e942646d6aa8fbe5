"""Kinds of values that gates of shapes and of layouts ask in turn: kernels go another way at some sizes or addresses.

A way of its own may lack what only such values show: a row's maximum, an eps, a second pass, or a limit of a type.
"""

from collections.abc import Iterator

from forge.domain.input_kind import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel

TELLING: tuple[InputKind, ...] = (
    *("large", "small", "offset_mean", "offset_operands", "rows_apart", "mixed"),
    *("tiny", "heavy_tails", "zero_rows"),
)
"""Kinds of values that are asked in turn. Chosen; the gate `scales` asks all kinds, at few shapes."""


def kinds_in_turn(kernel: LoadedKernel) -> Iterator[InputKind]:
    """Yield the kinds without end, each once before one comes again, in an order that is new each time."""
    told = kernel.definition.kinds(TELLING) or ("normal",)
    while True:
        yield from kernel.rng.sample(told, len(told))
