"""Draws the kinds of hard values that are asked where times are taken: those of the gates, and NaN among them."""

import random
from dataclasses import dataclass

from forge.domain.input_kind import END_KINDS, InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates import scales, specials

ALONE_SHARE = 0.5
"""Share of single draws that have NaN, infinities or masks. Chosen; a single draw of any kind seldom has them."""
FINITE_KINDS = frozenset({"subnormal"})
"""Kinds of the gate `specials` whose values are usual ones except for their size."""


@dataclass(frozen=True)
class HardKinds:
    """The kinds of values that gates ask of an operation at the public shape."""

    every: tuple[InputKind, ...]
    special: tuple[InputKind, ...]
    """Kinds among `every` that have NaN, infinities or masks."""

    def draw(self, count: int, rng: random.Random) -> list[InputKind]:
        """Draw kinds at random; the first of several has NaN, infinities or masks, if the contract defines them.

        A kernel that leaves them out is quicker, and they are few among all kinds.
        """
        kinds = [rng.choice(self.every) for _ in range(count)]
        if self.special and kinds and (count > 1 or rng.random() < ALONE_SHARE):
            kinds[0] = rng.choice(self.special)
        return kinds


def hard_kinds(kernel: LoadedKernel) -> HardKinds:
    """Return the kinds of values that gates ask of the operation at the public shape."""
    operation, asked = kernel.operation, specials.kinds_of(kernel)
    if kernel.shape[operation.reduced_axis] == 1 or not operation.weights:
        asked = tuple(kind for kind in asked if kind != "special_weights")
    every = kernel.definition.kinds((*scales.KINDS, *END_KINDS, *asked)) or ("normal",)
    return HardKinds(every, tuple(kind for kind in asked if kind in every and kind not in FINITE_KINDS))
