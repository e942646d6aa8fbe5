"""Element types and the shapes of operands.

Unit roundoffs are for round to nearest: the relative error of one rounding is at most u. Sources: IEEE 754-2019
(binary32 2^-24, binary16 2^-11) and bfloat16's 8-bit significand (2^-8).
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from forge.domain.digest import Value
from forge.errors import UnknownName, UsageError

DType = Literal["fp32", "fp16", "bf16"]
"""Type of a task: the type that its activations and weights are stored in."""
DTYPES: tuple[DType, ...] = get_args(DType)
ElementType = Literal[DType, "fp64", "fp8_e4m3", "int8", "uint8", "int32", "int64", "bool"]
"""Type of one operand's elements. fp8_e4m3 is OCP 8-bit e4m3 without infinities: torch's float8_e4m3fn."""

INTEGERS: frozenset[ElementType] = frozenset({"int8", "uint8", "int32", "int64", "bool"})
"""Element types of whole numbers and truth values."""

ITEMSIZE_BYTES: dict[ElementType, int] = {
    "fp32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp64": 8,
    "fp8_e4m3": 1,
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "int64": 8,
    "bool": 1,
}
TORCH_NAMES: dict[ElementType, str] = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp64": "float64",
    "fp8_e4m3": "float8_e4m3fn",
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "int64": "int64",
    "bool": "bool",
}
UNIT_ROUNDOFF: dict[DType, float] = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
"""Unit roundoff u of each type: the largest relative error of one rounding to nearest."""

ClaimableLayout = Literal["strided_rows", "transposed", "expanded"]
LayoutName = Literal["contiguous", "offset", ClaimableLayout]
"""Memory layout of an input's elements.

- `contiguous`: one after the other.
- `offset`: contiguous, but one element into the storage, so the address is aligned to one element only.
- `strided_rows`: with gaps between rows, and after each piece of the first of three axes or more.
- `transposed`: columns before rows.
- `expanded`: one stored row stands for all rows.
"""

AxisName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
AxisSize = Annotated[int, Field(ge=0, le=2**31)]
Shape = dict[AxisName, AxisSize]
"""Sizes by axis name, for example {"batch": 16, "hidden_size": 4096}."""


class AsKind(Value):
    """Values of the workload's kind, times a power of two. Floats are drawn so by default."""

    exponent: int = 0


class LogSums(AsKind):
    """Logarithms of sums of exponentials, of the workload's kind. That of an empty sum is minus infinity.

    In three unusual kinds, a quarter of the entries at even or at odd positions are empty. In half of the rows it is
    whole rows that are empty. Of two operands, one with even positions and one with odd ones, at most one is empty
    at any position.
    """

    empty: Literal["even", "odd"]


class Rotations(AsKind):
    """Cosines or sines of angles, of the workload's kind. In one kind they are a model's table for positions in turn.

    Pair i of n is turned by p base^(-i / n) at position p. So at position 0 all cosines are 1, and later pairs turn
    so slowly that a coarse type rounds their cosines to 1.
    """

    part: Literal["cos", "sin"]


class Indices(Value):
    """Whole numbers from 0 to the size of an axis minus one."""

    axis: str
    extremes_of: str | None = None
    """Name of an earlier operand. A quarter of the indices point at the largest number in its row, and a quarter at
    the smallest. None: all indices are random."""


class Whole(Value):
    """Whole numbers from 0 to `below` minus one, equally likely. Up to 256, every element type holds them exactly."""

    below: Annotated[int, Field(ge=1, le=256)]


class AnyByte(Value):
    """All values of a one-byte type, equally likely."""


class Between(Value):
    """Numbers from `low` to `high`, uniform on a linear scale (`difference`) or on a logarithmic one (`ratio`)."""

    low: float
    high: float
    by: Literal["difference", "ratio"] = "difference"
    default: float | None = 1.0
    """Number that programs give if their user gives none, such as a temperature of 1; None if there is none."""


class Counts(Value):
    """Counts of positions of an axis, such as a top-k. They range from below 0 to above the axis; half are small.

    Workloads of unusual values have some of the largest counts that programs give.
    """

    axis: str
    default: int = 0
    """Count that programs give if their user gives none: all positions."""

    @staticmethod
    def ends(size: int) -> tuple[int, int]:
        """Return the smallest number that is drawn, and the largest plus one."""
        return -2, size + 20


class Chance(Value):
    """Numbers from 0 up to 1, equally likely, that decide a sampled answer."""


class Parts(Value):
    """Whole numbers that add up to the size of an axis, such as group sizes. A quarter are zero.

    The others are at least 1, if the axis is large enough. Workloads of unusual values also draw other patterns,
    whose sum may be below the axis.
    """

    axis: str

    @staticmethod
    def filled(parts: int, total: int) -> int:
        """Return how many of `parts` numbers aren't zero when they add up to `total`."""
        return min(total, parts - parts // 4)


class Slots(Value):
    """Distinct whole numbers below the size of an axis, or -1 for no slot.

    About an eighth of the entries are -1, and so are entries beyond the number of slots. Workloads of unusual values
    also draw other patterns: all -1, every slot, runs of consecutive slots, and runs that are out of order inside.
    """

    axis: str

    @staticmethod
    def taken(entries: int, size: int) -> int:
        """Return how many of `entries` have a slot when there are `size` slots."""
        return min(entries - (entries + 5) // 8, size)


Values = AsKind | LogSums | Rotations | Indices | Whole | AnyByte | Between | Chance | Counts | Parts | Slots
"""Rule that an operand's values are drawn by: a closed union. Only `AsKind`, `LogSums` and `Rotations` follow
the workload's kind."""


class TensorSpec(Value):
    """One operand: its name and its axes, outermost first. An axis that is a number is a fixed size."""

    name: str
    axes: tuple[str, ...]
    element: ElementType | None = None
    """Element type; None: the task's type."""
    values: Values = AsKind()
    """Rule that its values are drawn by, if it is an input."""
    times: dict[str, int] = Field(default_factory=dict)
    """Axis -> number of entries for each position, such as 2 for the two halves of a head."""
    per: dict[str, int] = Field(default_factory=dict)
    """Axis -> number of positions that share one entry, such as a scale of a group or two numbers in a byte. The last
    entry may have fewer."""
    at_most: dict[str, int] = Field(default_factory=dict)
    """Axis -> largest number of positions that the operand has, such as 8 for a top-8."""

    def sizes(self, shape: Mapping[str, int]) -> tuple[int, ...]:
        """Return the operand's sizes when the operation's axes have the sizes in `shape`."""
        if not (self.times or self.per or self.at_most):
            fixed = _fixed_sizes(self.axes)
            return tuple([shape[axis] if size is None else size for axis, size in zip(self.axes, fixed, strict=True)])
        shared = (-(-_size(axis, shape) * self.times.get(axis, 1) // self.per.get(axis, 1)) for axis in self.axes)
        return tuple(min(size, self.at_most.get(axis, size)) for axis, size in zip(self.axes, shared, strict=True))

    def element_type(self, dtype: DType) -> ElementType:
        """Return the type of its elements in a task of type `dtype`."""
        return self.element or dtype

    def rounded_to(self, dtype: DType) -> DType:
        """Return the type whose rounding its values are judged by: its own if it is a DType, else the task's."""
        own = self.element_type(dtype)
        return next((one for one in DTYPES if one == own), dtype)

    @property
    def follows_kind(self) -> bool:
        """True if its values follow the workload's kind: floats, not indices or packed numbers."""
        return isinstance(self.values, AsKind)


@cache
def _fixed_sizes(axes: tuple[str, ...]) -> tuple[int | None, ...]:
    """Return the size of each axis that is a number; None for one whose size a shape has."""
    return tuple(int(axis) if axis.isdecimal() else None for axis in axes)


def _size(axis: str, shape: Mapping[str, int]) -> int:
    """Return the size of an axis; an axis that is a number is its own size."""
    return int(axis) if axis.isdecimal() else shape[axis]


DTYPE_ALIASES: dict[str, DType] = {
    **{TORCH_NAMES[dtype]: dtype for dtype in DTYPES},
    "float": "fp32",
    "half": "fp16",
}
"""torch's names of element types (docs.pytorch.org/docs/stable/tensor_attributes.html) -> ours."""


def parse_dtype(untrusted_name: str) -> DType:
    """Return the element type called `untrusted_name`, by torch's name too, or raise UnknownName."""
    for dtype in DTYPES:
        if dtype == DTYPE_ALIASES.get(untrusted_name, untrusted_name):
            return dtype
    raise UnknownName("dtype", untrusted_name, list(DTYPES))


def parse_shape(untrusted_text: str, axes: tuple[str, ...]) -> Shape:
    """Parse `batch=16,hidden_size=4096` into sizes for exactly `axes`, each at least 1; raise UsageError."""
    expected = ",".join(f"{axis}=N" for axis in axes)
    sizes: Shape = {}
    for item in untrusted_text.split(","):
        match = re.fullmatch(r"\s*([a-z][a-z0-9_]{0,31})\s*=\s*([0-9]{1,10})\s*", item)
        if match is None:
            raise UsageError(f"bad shape item {item!r}: expected {expected} with whole numbers from 1 to 2^31")
        name, size = match[1], int(match[2])
        if name not in axes:
            raise UnknownName("shape axis", name, list(axes))
        if name in sizes:
            raise UsageError(f"shape axis {name!r} is given twice: expected {expected}")
        if not 1 <= size <= 2**31:
            raise UsageError(f"bad size {size!r} for shape axis {name!r}: expected 1 to 2^31")
        sizes[name] = size
    missing = [axis for axis in axes if axis not in sizes]
    if missing:
        raise UsageError(f"shape {untrusted_text!r} lacks {', '.join(missing)}: expected {expected}")
    return sizes


def shape_text(shape: Mapping[str, int]) -> str:
    """Return a shape as `parse_shape` reads it, axes in name order."""
    return ",".join(f"{axis}={size}" for axis, size in sorted(shape.items()))
