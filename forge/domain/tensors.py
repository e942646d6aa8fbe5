"""Element types and the shapes of operands.

Unit roundoffs: IEEE 754-2019 (binary32 2^-24, binary16 2^-11) and bfloat16's 8-bit significand (2^-8), all for
round to nearest, where the relative error of one rounding is at most u.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from forge.domain.digest import Value
from forge.errors import UnknownName, UsageError

DType = Literal["fp32", "fp16", "bf16"]
"""The types that a task can be in: what its activations and weights are stored as."""
DTYPES: tuple[DType, ...] = get_args(DType)
ElementType = Literal[DType, "fp64", "fp8_e4m3", "int8", "uint8", "int32", "int64", "bool"]
"""What one operand's elements are; fp8_e4m3 is OCP 8-bit e4m3 without infinities, torch's float8_e4m3fn."""
ELEMENT_TYPES: tuple[ElementType, ...] = (*DTYPES, "fp64", "fp8_e4m3", "int8", "uint8", "int32", "int64", "bool")

INTEGERS: frozenset[ElementType] = frozenset({"int8", "uint8", "int32", "int64", "bool"})

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

ClaimableLayout = Literal["strided_rows", "transposed", "expanded"]
LayoutName = Literal["contiguous", "offset", ClaimableLayout]
"""How the elements of an input lie: one after the other; so, but one element into their storage, so that the
address is aligned to an element and no more; with gaps between rows; columns before rows; one row for all."""

AxisName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
AxisSize = Annotated[int, Field(ge=0, le=2**31)]
Shape = dict[AxisName, AxisSize]
"""Axis name -> size, for example {"batch": 16, "hidden_size": 4096}."""

AXIS_ABBREVIATIONS = {"batch": "b", "hidden_size": "h", "seq_len": "s", "heads": "n"}


class AsKind(Value):
    """Values as the workload's kind says, times a power of two: what floats are unless they say otherwise."""

    exponent: int = 0


class Indices(Value):
    """Whole numbers from 0 to the size of an axis less one."""

    axis: str
    extremes_of: str | None = None
    """An operand in front of it, in whose rows a quarter each point at the largest and at the smallest number."""


class Whole(Value):
    """Whole numbers from 0 to `below` less one, all alike; exact in every element type up to 256."""

    below: Annotated[int, Field(ge=1, le=256)]


class AnyByte(Value):
    """Every value of a type of one byte, all alike."""


class Between(Value):
    """Numbers from `low` to `high`: all differences alike, or all ratios."""

    low: float
    high: float
    by: Literal["difference", "ratio"] = "difference"


class Counts(Value):
    """How many of an axis: from less than none to more than all, half of them few."""

    axis: str

    @staticmethod
    def ends(size: int) -> tuple[int, int]:
        """The first number, and the first that isn't drawn any more."""
        return -2, size + 20


class Chance(Value):
    """Numbers from 0 up to 1, all alike, that an answer is drawn by."""


class Parts(Value):
    """Whole numbers that add up to the size of an axis: a quarter of them zero, the others not where that goes.

    Beside unusual values there may be other patterns, of less than the axis as well.
    """

    axis: str

    @staticmethod
    def filled(parts: int, total: int) -> int:
        """How many of so many parts of a total aren't zero."""
        return min(total, parts - parts // 4)


class Slots(Value):
    """Different whole numbers below the size of an axis; about an eighth, and what is left over, are -1: none.

    Beside unusual values there may be other patterns: none, as many as there are, runs.
    """

    axis: str

    @staticmethod
    def taken(entries: int, size: int) -> int:
        """How many of so many entries have a number."""
        return min(entries - (entries + 5) // 8, size)


Values = AsKind | Indices | Whole | AnyByte | Between | Chance | Counts | Parts | Slots
"""How an operand's values are drawn: a closed union. `AsKind` alone are floats that follow the kind of workload."""


class TensorSpec(Value):
    """One operand: its name and its axes, outermost first; a number among them is a size that never varies."""

    name: str
    axes: tuple[str, ...]
    element: ElementType | None = None
    """Its own element type; None is the task's."""
    values: Values = AsKind()
    """How it is drawn, if it is an input."""
    times: dict[str, int] = Field(default_factory=dict)
    """By axis, how many entries one position has (two halves of a head)."""
    per: dict[str, int] = Field(default_factory=dict)
    """By axis, how many positions share one entry (a scale of a group, two numbers in a byte); the last may have
    fewer."""
    at_most: dict[str, int] = Field(default_factory=dict)
    """By axis, how many of its positions are kept, if it has so many."""

    def sizes(self, shape: Mapping[str, int]) -> tuple[int, ...]:
        """The operand's sizes when the operation's axes have the sizes in `shape`."""
        shared = (-(-_size(axis, shape) * self.times.get(axis, 1) // self.per.get(axis, 1)) for axis in self.axes)
        return tuple(min(size, self.at_most.get(axis, size)) for axis, size in zip(self.axes, shared, strict=True))

    def element_type(self, dtype: DType) -> ElementType:
        """What its elements are in a task of this type."""
        return self.element or dtype

    def rounded_to(self, dtype: DType) -> DType:
        """The type whose rounding its values are judged by: its own, or the task's if its own doesn't round so."""
        own = self.element_type(dtype)
        return next((one for one in DTYPES if one == own), dtype)

    @property
    def follows_kind(self) -> bool:
        """Whether its values depend on the workload's kind: floats, not indices or what is packed."""
        return isinstance(self.values, AsKind)


def _size(axis: str, shape: Mapping[str, int]) -> int:
    """An axis that is a number has that size at every shape."""
    return int(axis) if axis.isdecimal() else shape[axis]


def parse_dtype(untrusted_name: str) -> DType:
    """Return the element type called `untrusted_name`, or raise UnknownName."""
    for dtype in DTYPES:
        if dtype == untrusted_name:
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


def shape_slug(shape: Mapping[str, int]) -> str:
    """`b16_h4096`: axes in name order, common ones abbreviated."""
    return "_".join(f"{AXIS_ABBREVIATIONS.get(axis, axis.replace('_', ''))}{shape[axis]}" for axis in sorted(shape))
