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
DTYPES: tuple[DType, ...] = get_args(DType)

ITEMSIZE_BYTES: dict[DType, int] = {"fp32": 4, "fp16": 2, "bf16": 2}
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


class TensorSpec(Value):
    """One operand: its name and its axes, outermost first."""

    name: str
    axes: tuple[str, ...]

    def sizes(self, shape: Mapping[str, int]) -> tuple[int, ...]:
        """The operand's sizes when the operation's axes have the sizes in `shape`."""
        return tuple(shape[axis] for axis in self.axes)


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
