"""The domain that a kernel declares: the shapes at which it promises an answer. No lookup answers outside it."""

from forge.lookup.frozen import Frozen
from forge.lookup.sizes import is_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    # a snapshot is JSON: this module turns it into typed values or raises
    Document = dict[str, Any]
    Condition = tuple[str, tuple[str, ...], int]

FIELDS = {"axes", "relations", "layouts", "alignment_bytes"}
"""Fields of a declared domain."""
AXIS_FIELDS = {"least", "most", "multiple_of", "values"}
"""Fields of one axis of a declared domain."""
RELATION_FIELDS = {
    "divisible": {"kind", "axis", "by"},
    "product": {"kind", "axes", "most"},
    "not_above": {"kind", "axis", "other"},
}
LARGEST_AXIS = 2**31
"""Largest size of an axis without a limit of its own."""


class DeclaredDomain(Frozen):
    """What a kernel promises; an unknown condition is an error, since nothing may be answered beyond it."""

    __slots__ = ("_document", "_ranges", "_relations", "alignment_bytes", "layouts")

    layouts: "tuple[str, ...] | None"
    """Layouts of inputs that it takes; None: those of the operation's contract."""
    alignment_bytes: int
    """Number of bytes that divides the address of every input."""
    _document: "Document"
    _ranges: "tuple[tuple[str, int, int, int, frozenset[int] | None], ...]"
    _relations: "tuple[Condition, ...]"

    def __init__(self, untrusted: "Document") -> None:
        """Raise ValueError, KeyError, TypeError or AttributeError unless it is a domain."""
        if not set(untrusted) <= FIELDS:
            raise ValueError(f"a domain has the unknown fields {sorted(set(untrusted) - FIELDS)}")
        listed = untrusted.get("layouts")
        self._fill(
            _document=untrusted,
            _ranges=tuple(_range(axis, one) for axis, one in untrusted.get("axes", {}).items()),
            _relations=tuple(map(_relation, untrusted.get("relations", ()))),
            layouts=None if listed is None else tuple(map(str, listed)),
            alignment_bytes=_whole(untrusted.get("alignment_bytes", 1), "alignment_bytes"),
        )

    def contains(self, shape: "Mapping[str, int]") -> bool:
        """Return whether the kernel promises an answer at a shape."""
        return self.broken(shape) is None

    def broken(self, shape: "Mapping[str, int]") -> str | None:
        """Return the first condition that a shape breaks, or None."""
        for axis, least, most, step, listed in self._ranges:
            size = shape.get(axis, -1)
            if listed is not None and size not in listed:
                return f"{axis} in {'|'.join(map(str, sorted(listed)))}"
            if not (least <= size <= most and size % step == 0):
                multiple = f" in steps of {step}" if step > 1 else ""
                return f"{axis} from {least} to {most}{multiple}"
        for kind, axes, most in self._relations:
            if not (all(axis in shape for axis in axes) and _holds(kind, [shape[axis] for axis in axes], most)):
                return f"{kind} of {', '.join(axes)}" + (f", at most {most}" if kind == "product" else "")
        return None

    def document(self) -> "Document":
        """Return all fields as plain data that the caller may change."""
        from copy import deepcopy

        return deepcopy(self._document)


def _range(axis: str, untrusted: "Document") -> "tuple[str, int, int, int, frozenset[int] | None]":
    if not set(untrusted) <= AXIS_FIELDS:
        raise ValueError(f"the axis {axis!r} has the unknown fields {sorted(set(untrusted) - AXIS_FIELDS)}")
    step = _whole(untrusted.get("multiple_of", 1), "multiple_of")
    listed = untrusted.get("values")
    if step < 1:
        raise ValueError(f"the axis {axis!r} has multiple_of 0: expected at least 1")
    if listed is not None:
        sizes = frozenset(_whole(one, "values") for one in listed)
        return axis, min(sizes), max(sizes), 1, sizes
    least = -(-_whole(untrusted.get("least", 1), "least") // step) * step
    return axis, least, _whole(untrusted.get("most", LARGEST_AXIS), "most"), step, None


def _relation(untrusted: "Document") -> "Condition":
    kind = untrusted["kind"]
    if set(untrusted) != RELATION_FIELDS.get(kind):
        expected = ", ".join(RELATION_FIELDS)
        raise ValueError(f"a domain has the relation {str(untrusted)[:200]}: expected {expected}, with its fields")
    if kind == "product":
        return kind, tuple(untrusted["axes"]), _whole(untrusted["most"], "most")
    return kind, (untrusted["axis"], untrusted["by" if kind == "divisible" else "other"]), 0


def _holds(kind: str, sizes: list[int], most: int) -> bool:
    if kind == "product":
        product = 1
        for size in sizes:
            product *= size
        return product <= most
    if kind == "divisible":
        return sizes[1] > 0 and sizes[0] % sizes[1] == 0
    return sizes[0] <= sizes[1]


def _whole(untrusted: object, name: str) -> int:
    if type(untrusted) is not int or not is_size(untrusted):
        raise ValueError(f"a domain has {name} {untrusted!r}: expected a whole number")
    return untrusted
