"""Chooses the kinds of values at which a reference file's own values can be changed."""

from collections.abc import Iterable

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import CONSTANT, Contract, Generated, Integers, Normal, Uniform
from forge.lab.reference.drawing import first_alike, is_square
from forge.lab.reference.faint import FAINT_KINDS, may_be_faint
from forge.lab.reference.family_values import OF_WEIGHTS, OUTSIDE, SIGNED, WEIGHT_FACTORS
from forge.lab.reference.planted_values import has_two_values
from forge.lab.reference.precision import FEW_TERMS

KINDS: tuple[InputKind, ...] = (
    *("small", "large", "constant", "sparse", "ties", "heavy_tails", "zeros"),
    *("ordered", "falling", "alternating", "one_sided", "far", "equal_rows", "far_rows", "outliers"),
    *("equal_operands", "single", "tiny", "rows_apart", SIGNED, *WEIGHT_FACTORS, *OUTSIDE, "very_far", "beside_zero"),
    *("near_highest", "zero_diagonal"),
)
"""Kinds besides `normal`, whose values are as inferred.

In order: near each other, at the upper end, one value, mostly zeros, on a coarse grid, at both ends, zeros. Then
rising in each row, falling, above and below their middle in turn, and rows on one side of it. Then whole samples far
from it, and powers of two in rows of which some are equal. Then rows of one value, all far from it on one side. Then
a few large values in each row. Then equal in all operands of one size and family. Last, a mask or another
choice of two values has one of them once in each row. Operands are all tiny, or rows have different small sizes;
forge/lab/reference/faint.py makes them. Weights have either sign, or are larger. Uniform operands leave their range
in the four kinds after that alone. Then normal ones are further away, or all lie on one side of zero. Then whole
numbers are near the upper end of their range. Last, square matrices have zeros on their diagonal."""
HEAVY_BYTES = 2**27
"""Size of a call's operands in bytes above which fewer kinds of values are asked. Chosen; each further kind asks the
reference and its oracle once more at this size."""
HEAVY_KINDS: tuple[InputKind, ...] = ("small", "constant", FEW_TERMS, "outside_range", "overflowing", "far")
"""Kinds of values that are asked of such a reference, besides the inferred ones."""


def judged_kinds(sound: Iterable[InputKind]) -> tuple[InputKind, ...]:
    """Return the kinds at which a reference is sound, but very far values only where far ones are among them.

    Where all shares of a softmax are one or zero, a reference and its fp64 agree by chance on which zero comes first.
    """
    kinds = tuple(sound)
    return tuple(kind for kind in kinds if kind != "very_far" or "far" in kinds)


def usual_kinds(contract: Contract) -> tuple[InputKind, ...]:
    """Return all kinds that change something, or a few of them for a reference whose calls are heavy.

    Equal operands are asked if two are alike, and far rows if one is normal.

    One value once in each row is asked if an operand is a choice of two values. Faint operands are asked if zero is
    one of an operand's values and the reference runs in fp64, which says what it usually answers. Other
    weights are asked if there is a parameter. Numbers outside a uniform operand's range, or others than zeros, are
    asked if no user declared it.
    """
    tensors = contract.tensors
    alike = any(first_alike(contract, place) != place for place in range(len(tensors)))
    normal = [one for one in tensors if isinstance(one.drawn, Normal)]
    rows = any(len(one.sizes) > 1 for one in normal)
    masks = any(has_two_values(one.drawn) and not one.coupled for one in tensors)
    asked: dict[InputKind, bool] = {"equal_operands": alike, "far_rows": rows, "single": masks}
    asked |= dict.fromkeys(OF_WEIGHTS, any(one.parameter for one in contract.weights))
    seen = [one for one in tensors if one.source != "family" and one.element is None]
    ranges = any(isinstance(one.drawn, Uniform) or one.drawn == Generated(structure=CONSTANT) for one in seen)
    asked |= dict.fromkeys(OUTSIDE, ranges)
    asked |= dict.fromkeys(("very_far", "beside_zero"), bool(normal))
    asked["near_highest"] = any(isinstance(one.drawn, Integers) and not one.coupled for one in tensors)
    asked |= dict.fromkeys(FAINT_KINDS, contract.wide and any(may_be_faint(contract, one) for one in tensors))
    asked["zero_diagonal"] = any(map(is_square, tensors))
    among = HEAVY_KINDS if contract.set_bytes > HEAVY_BYTES else KINDS
    return tuple(kind for kind in among if asked.get(kind, True))
