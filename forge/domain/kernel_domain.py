"""The domain of a kernel: the shapes, layouts and addresses at which it promises an answer.

A production kernel seldom takes every shape: a row must fit into one block, or a width must be a multiple of a tile.
Inside its domain a kernel must be right. Outside it may refuse to answer by raising an exception.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from forge.domain.digest import Value
from forge.domain.tensors import AxisName, AxisSize, LayoutName, TensorSpec

LARGEST_SIZE = 2**31
"""Largest size of an axis that a shape may have, in elements. It is the first size that a signed 32-bit number can't
hold."""
MOST_LISTED = 64
"""Largest number of sizes in a closed list. Chosen; a person reads the list."""
MOST_RELATIONS = 32
"""Largest number of relations of a domain: those of an author, and a limit for each operand. Chosen; every shape is
held against each of them."""
MOST_ELEMENTS = 2**62
"""Largest limit on a product of sizes; tensors count their elements in 64 bits with a sign."""

ListedSizes = Annotated[tuple[AxisSize, ...], Field(min_length=1, max_length=MOST_LISTED)]


class AxisDomain(Value):
    """The sizes of one axis. Without `least` and `values` the smallest size is one multiple, or 1."""

    least: AxisSize | None = None
    """Smallest size. Write 0 if the kernel also takes no rows."""
    most: AxisSize | None = None
    """Largest size. None: no limit."""
    multiple_of: Annotated[int, Field(ge=1, le=LARGEST_SIZE)] | None = None
    """Number that divides every size."""
    values: ListedSizes | None = None
    """Closed list of sizes. None: every size that the other fields allow."""

    @model_serializer(mode="wrap")
    def _only_stated(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return stated_fields(write(self))

    @model_validator(mode="after")
    def _holds_a_size(self) -> "AxisDomain":
        """Raise ValueError if no size lies in it, if the list contradicts the range, or if nothing is declared."""
        if not self.conditions("size"):
            raise ValueError("nothing is said of the axis: expected least, most, multiple_of or values")
        if self.values is None and self.low > self.high:
            raise ValueError(f"no size lies in it ({' and '.join(self.conditions('size'))}): expected at least one")
        for size in self.values or ():
            if not self._within_range(size):
                said = " and ".join(self.model_copy(update={"values": None}).conditions("size"))
                raise ValueError(f"it contradicts itself: {size} is listed in values, but not {said}")
        if self.values is not None and len(set(self.values)) != len(self.values):
            raise ValueError("a size is listed twice in values: expected each once")
        return self

    @property
    def step(self) -> int:
        """The distance between two sizes, if there is no list."""
        return self.multiple_of or 1

    @property
    def low(self) -> int:
        """The smallest size."""
        if self.values is not None:
            return min(self.values)
        return -(-(1 if self.least is None else self.least) // self.step) * self.step

    @property
    def high(self) -> int:
        """The largest size."""
        if self.values is not None:
            return max(self.values)
        return (LARGEST_SIZE if self.most is None else self.most) // self.step * self.step

    def _within_range(self, size: int) -> bool:
        least = self.least if self.least is not None else min(1, size)
        most = LARGEST_SIZE if self.most is None else self.most
        return least <= size <= most and size % self.step == 0

    def contains(self, size: int) -> bool:
        """Return whether a size lies in it."""
        if self.values is not None:
            return size in self.values
        return self.low <= size <= self.high and size % self.step == 0

    def at_most(self, size: int) -> int:
        """Return the largest size up to `size`, or the smallest one if there is none."""
        if self.values is not None:
            return max((one for one in self.values if one <= size), default=self.low)
        return max(self.low, min(size, self.high) // self.step * self.step)

    def at_least(self, size: int) -> int:
        """Return the smallest size from `size` on, or the largest one if there is none."""
        if self.values is not None:
            return min((one for one in self.values if one >= size), default=self.high)
        return min(self.high, -(-max(size, self.low) // self.step) * self.step)

    def nearest(self, size: int) -> int:
        """Return the size that is the nearest to `size`, the smaller of two."""
        below, above = self.at_most(size), self.at_least(size)
        return below if abs(size - below) <= abs(above - size) else above

    def broken_limits(self, axis: str, size: int) -> list[str]:
        """Return as text each limit that a size outside breaks; none if it is zero, and zero isn't declared."""
        said = [] if self.least is None or size >= self.least else [f"{axis} >= {self.least}"]
        said += [] if self.most is None or size <= self.most else [f"{axis} <= {self.most}"]
        said += [] if size % self.step == 0 else [f"{axis} % {self.step} == 0"]
        return said + ([] if self.values is None or size in self.values else [self.conditions(axis)[-1]])

    def conditions(self, axis: str) -> list[str]:
        """Return each limit on the axis' sizes as text, such as `hidden_size % 8 == 0`."""
        said = [] if self.least is None else [f"{axis} >= {self.least}"]
        said += [] if self.most is None else [f"{axis} <= {self.most}"]
        said += [] if self.multiple_of is None else [f"{axis} % {self.multiple_of} == 0"]
        said += [] if self.values is None else [f"{axis} in {'|'.join(map(str, self.values))}"]
        return said


class Divisible(Value):
    """The size of `axis` is a multiple of the size of `by`."""

    kind: Literal["divisible"] = "divisible"
    axis: AxisName
    by: AxisName

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that it names."""
        return self.axis, self.by

    def holds(self, shape: Mapping[str, int]) -> bool:
        """Return whether a shape with these axes keeps it; nothing is a multiple of zero."""
        return shape[self.by] > 0 and shape[self.axis] % shape[self.by] == 0

    @property
    def condition(self) -> str:
        """The relation as text."""
        return f"{self.axis} % {self.by} == 0"


class ProductLimit(Value):
    """The sizes of `axes` multiplied are at most `most`."""

    kind: Literal["product"] = "product"
    axes: Annotated[tuple[AxisName, ...], Field(min_length=1, max_length=8)]
    most: Annotated[int, Field(ge=1, le=MOST_ELEMENTS)]

    def holds(self, shape: Mapping[str, int]) -> bool:
        """Return whether a shape with these axes keeps it."""
        return math.prod(shape[axis] for axis in self.axes) <= self.most

    @property
    def condition(self) -> str:
        """The relation as text."""
        return f"{' * '.join(self.axes)} <= {self.most}"


class NotAbove(Value):
    """The size of `axis` is at most the size of `other`."""

    kind: Literal["not_above"] = "not_above"
    axis: AxisName
    other: AxisName

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that it names."""
        return self.axis, self.other

    def holds(self, shape: Mapping[str, int]) -> bool:
        """Return whether a shape with these axes keeps it."""
        return shape[self.axis] <= shape[self.other]

    @property
    def condition(self) -> str:
        """The relation as text."""
        return f"{self.axis} <= {self.other}"


SizeRelation = Annotated[Divisible | ProductLimit | NotAbove, Field(discriminator="kind")]
"""Relation between sizes of axes: a closed union."""
Alignment = Literal[2, 4, 8, 16, 32, 64, 128, 256]
"""Number of bytes that divides the address of every input."""


class KernelDomain(Value):
    """The shapes, layouts and addresses at which a kernel promises an answer. What isn't named isn't restricted."""

    axes: dict[AxisName, AxisDomain] = Field(default_factory=dict)
    """Sizes by axis. An axis that isn't named may have every size of the operation's contract."""
    relations: Annotated[tuple[SizeRelation, ...], Field(max_length=MOST_RELATIONS)] = ()
    """Relations between sizes; all must hold."""
    most_elements: Annotated[int, Field(ge=1, le=MOST_ELEMENTS)] | None = None
    """Largest number of elements of one operand. Packed operands count one element a position."""
    layouts: Annotated[tuple[LayoutName, ...], Field(min_length=1, max_length=5)] | None = None
    """Closed list of input layouts, such as only `contiguous`. None: those of the operation's contract."""
    alignment_bytes: Alignment | None = None
    """Number of bytes that divides the address of every input. None: the size of an element."""

    @model_serializer(mode="wrap")
    def _only_stated(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return stated_fields(write(self))

    @model_validator(mode="after")
    def _declares_something(self) -> "KernelDomain":
        """Raise ValueError if it declares nothing, relates an axis to itself, or leaves out contiguous inputs."""
        if self == KernelDomain.model_construct(axes={}, relations=()):
            raise ValueError("an empty domain: expected at least one condition, or no domain at all")
        for relation in self.relations:
            if len(set(relation.axes)) != len(relation.axes):
                raise ValueError(f"{relation.condition!r} names an axis twice: expected different axes")
        if self.layouts is not None and (
            "contiguous" not in self.layouts or len(set(self.layouts)) < len(self.layouts)
        ):
            raise ValueError(f"layouts {list(self.layouts)}: expected contiguous among them, and each once")
        return self

    def contains(self, shape: Mapping[str, int]) -> bool:
        """Return whether a shape lies in it. A shape without one of its axes doesn't."""
        return self.broken(shape) is None

    def broken(self, shape: Mapping[str, int]) -> str | None:
        """Return the first condition that a shape breaks; None if it lies inside."""
        for axis, sizes in self.axes.items():
            if axis not in shape or not sizes.contains(shape[axis]):
                return " and ".join(sizes.conditions(axis))
        for relation in self.relations:
            if not (all(axis in shape for axis in relation.axes) and relation.holds(shape)):
                return relation.condition
        return None

    @property
    def named_axes(self) -> tuple[str, ...]:
        """The axes that it names, each once."""
        related = (axis for relation in self.relations for axis in relation.axes)
        return tuple(dict.fromkeys((*self.axes, *related)))

    def sizes_of(self, axis: str, *, least: int = 1) -> AxisDomain:
        """Return the sizes of an axis; one that it doesn't name has every size from `least` on."""
        return self.axes.get(axis) or AxisDomain(least=least)

    def resolved(self, operands: Iterable[TensorSpec]) -> "KernelDomain":
        """Return the same with products of operands' axes in place of the limit on elements.

        Raise ValueError if an operand has more elements than the limit at every shape.
        """
        if self.most_elements is None:
            return self
        limits: dict[tuple[str, ...], int] = {}
        for spec in operands:
            axes, most = _product_limit(spec, self.most_elements)
            if axes:
                limits[axes] = min(most, limits.get(axes, most))
        stated = {one.axes: one.most for one in self.relations if isinstance(one, ProductLimit)}
        added = (ProductLimit(axes=axes, most=most) for axes, most in limits.items() if stated.get(axes) != most)
        return self.model_copy(update={"relations": (*self.relations, *added), "most_elements": None})

    @property
    def conditions(self) -> tuple[str, ...]:
        """What it demands, one condition each, as `parse_domain` reads them."""
        said = [one for axis, sizes in self.axes.items() for one in sizes.conditions(axis)]
        said += [relation.condition for relation in self.relations]
        said += [] if self.most_elements is None else [f"elements <= {self.most_elements}"]
        said += [] if self.layouts is None else [f"layouts in {'|'.join(self.layouts)}"]
        said += [] if self.alignment_bytes is None else [f"alignment == {self.alignment_bytes}"]
        return tuple(said)

    @property
    def text(self) -> str:
        """All conditions on one line."""
        return ", ".join(self.conditions)


def _product_limit(spec: TensorSpec, most: int) -> tuple[tuple[str, ...], int]:
    """Return an operand's named axes, and the limit on their product. Shared entries count as if each had one."""
    fixed = math.prod((*(int(axis) for axis in spec.axes if axis.isdecimal()), *spec.times.values()))
    if fixed > most:
        raise ValueError(f"elements <= {most}: the operand {spec.name!r} always has {fixed} or more")
    return tuple(axis for axis in spec.axes if not axis.isdecimal()), most // max(1, fixed)


def stated_fields(written: dict[str, object]) -> dict[str, object]:
    """Return a document without its empty fields, so that a new field leaves older documents unchanged."""
    return {name: value for name, value in written.items() if value not in (None, (), {})}


def effective_layouts(domain: KernelDomain | None, contract: Sequence[LayoutName]) -> tuple[LayoutName, ...]:
    """Return the layouts in which inputs must be accepted: the domain's, or the contract's if it states none."""
    return tuple(contract) if domain is None or domain.layouts is None else domain.layouts
