"""Chooses the kinds of values at which a reference file's own values can be changed."""

from collections.abc import Iterable

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import CONSTANT, Contract, Generated, Normal, Uniform
from forge.lab.reference.drawing import first_alike
from forge.lab.reference.faint import FAINT_KINDS, may_be_faint
from forge.lab.reference.family_values import KINDS, OF_WEIGHTS, OUTSIDE
from forge.lab.reference.planted_values import has_two_values


def judged_kinds(sound: Iterable[InputKind]) -> tuple[InputKind, ...]:
    """Return the kinds at which a reference is sound, but very far values only where far ones are among them.

    Where all shares of a softmax are one or zero, a reference and its fp64 agree by chance on which zero comes first.
    """
    kinds = tuple(sound)
    return tuple(kind for kind in kinds if kind != "very_far" or "far" in kinds)


def usual_kinds(contract: Contract) -> tuple[InputKind, ...]:
    """Return all kinds that change something: equal operands if two are alike, far rows if one is normal.

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
    asked |= dict.fromkeys(FAINT_KINDS, contract.wide and any(may_be_faint(contract, one) for one in tensors))
    return tuple(kind for kind in KINDS if asked.get(kind, True))
