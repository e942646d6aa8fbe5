"""A user's own operation: a reference file by digest, and everything that Forge inferred from it and showed the user.

The file is foreign code, and nothing here runs it. A guest reports sizes and types, and the host parses them. The
host itself computes ranges of values and tolerances, from bytes that the guest returned.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from forge.domain.digest import Digest, Value, is_empty, is_false, is_unset
from forge.domain.input_kind import InputKind
from forge.domain.task import Name
from forge.domain.tensors import ITEMSIZE_BYTES, AxisName, DType, ElementType, Shape

BATCH = "batch"
"""Name of the only axis of an own operation: the first size of the first tensor."""
PREFIX = "own_"
"""Prefix of every own operation's name. No operation of the catalogue has it."""
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
StateName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.]{1,256}$")]
ResultKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.]{0,256}$")]
Container = Annotated[str, StringConstraints(pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,63})?$")]
Literally = Annotated[str, StringConstraints(max_length=4096)]
"""Python literal as source text: numbers, strings, tuples, lists, dictionaries. In an argument `...` stands for a
tensor, which is the next operand that lies in this argument."""
Size = Annotated[int, Field(ge=0, le=2**31)]
Sizes = Annotated[tuple[Size, ...], Field(max_length=8)]


class Uniform(Value):
    """Floats from `low` to `high`, all equally likely."""

    family: Literal["uniform"] = "uniform"
    low: float
    high: float


class Normal(Value):
    """Normally distributed values."""

    family: Literal["normal"] = "normal"
    mean: float
    deviation: Annotated[float, Field(gt=0)]


class Among(Value):
    """A few values, all equally likely."""

    family: Literal["among"] = "among"
    values: Annotated[tuple[float, ...], Field(min_length=1, max_length=16)]


class Integers(Value):
    """Whole numbers from `low` to `high`, both included."""

    family: Literal["integers"] = "integers"
    low: int
    high: int


CONSTANT = "the same at every seed"
"""Structure of an operand that has one value in all draws."""


class Generated(Value):
    """Values with a structure that no distribution has: the file's own get_inputs draws them from the host's seed."""

    family: Literal["generated"] = "generated"
    structure: str
    """Structure that Forge saw in the values, in words."""


Family = Annotated[Uniform | Normal | Among | Integers | Generated, Field(discriminator="family")]


Source = Literal["family", "file", "planted"]
"""Source of an operand's values.

- `family`: its family alone, as declared by the user.
- `file`: the file's own get_inputs, which also reaches the ends of its ranges.
- `planted`: the file's own get_inputs. The host plants the ends, since the file draws them in a way that hides them.
"""
Varied = Annotated[tuple[tuple[Annotated[int, Field(ge=0, lt=8)], AxisName], ...], Field(max_length=8)]
"""Sizes of a tensor that vary besides the batch: the position of each, and the axis that it has."""


def _axes(sizes: tuple[int, ...], varied: Varied, *, batched: bool) -> tuple[str, ...]:
    names = {**({0: BATCH} if batched else {}), **dict(varied)}
    return tuple(names.get(place, str(size)) for place, size in enumerate(sizes))


class Operand(Value):
    """An argument that is a tensor."""

    name: Word
    element: ElementType | None
    """Element type; None: the task's type."""
    sizes: Sizes
    batched: bool = False
    """True if the first size is the batch."""
    drawn: Family
    """Distribution that the values are drawn from."""
    keyword: bool = Field(default=False, exclude_if=is_false)
    """True if it is passed by its name."""
    within: Container = Field(default="", exclude_if="".__eq__)
    """Name of the argument that it lies in: a list, a tuple or a dictionary. Empty: it is an argument itself."""
    source: Source = Field(default="family", exclude_if="family".__eq__)
    coupled: bool = Field(default=False, exclude_if=is_false)
    """True if the values fit only to those of the other coupled operands, so that all change together."""
    varied: Varied = Field(default=(), exclude_if=is_empty)

    @property
    def axes(self) -> tuple[str, ...]:
        """Each size as an axis: its name if it varies, otherwise its number."""
        return _axes(self.sizes, self.varied, batched=self.batched)

    @property
    def continuous(self) -> bool:
        """True if any value between the smallest and the largest is possible."""
        return self.drawn.family in ("uniform", "normal")


class Constant(Value):
    """An argument that isn't a tensor. Every call passes this value, with tensors in the places of `...`."""

    name: Word
    literal: Literally
    keyword: bool = Field(default=False, exclude_if=is_false)
    """True if it is passed by its name."""


class Weight(Value):
    """A tensor of the module's state dict, with all names that it has there."""

    names: Annotated[tuple[StateName, ...], Field(min_length=1, max_length=64)]
    element: ElementType | None
    sizes: Sizes
    parameter: bool
    """True for a parameter, False for a buffer."""


Around = Literal["all", "row", "sample", "channel"]
"""Neighbourhood of a value: all values (`all`) or those along the last axis (`row`). `sample` and `channel` are the
values at the same position of the first and of the second axis."""


class Local(Value):
    """An error bound that follows each value: its own magnitude, plus a share of its neighbourhood's."""

    around: Around
    share: Annotated[float, Field(ge=0, le=1)]
    """Share of the neighbourhood's root mean square that is added to the value's own magnitude."""
    error: Annotated[float, Field(ge=0)]
    """Largest error divided by that sum, over several seeds, rounded up to a power of two."""


class Result(Value):
    """A tensor that the reference returns."""

    key: ResultKey = Field(default="", exclude_if="".__eq__)
    """Place in the returned dictionary: keys and positions, joined by dots. Empty: no dictionary is returned."""
    element: ElementType | None
    sizes: Sizes
    batched: bool = False
    error: Annotated[float, Field(ge=0)] = 0.0
    """Largest error of the reference in the task's type, divided by the root mean square of its exact values. It is
    the largest of several seeds, rounded up to a power of two."""
    local: Local | None = Field(default=None, exclude_if=is_unset)
    """A narrower bound, for a task in which `error` alone lets known wrong answers pass. None: it isn't needed."""
    varied: Varied = Field(default=(), exclude_if=is_empty)
    borrowed: bool = Field(default=False, exclude_if=is_false)
    """True if the reference returns memory of an operand or of its state dict: each call's result is then a copy."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Each size as an axis: its name if it varies, otherwise its number."""
        return _axes(self.sizes, self.varied, batched=self.batched)


class Axis(Value):
    """A size that varies besides the batch."""

    name: AxisName
    size: Size
    """Size at which candidates are timed."""
    low: Size
    high: Size
    """Largest size that the user declares; a kernel must be right from `low` to here."""


class Contract(Value):
    """Everything but the file itself that is needed to judge a candidate against a reference file."""

    slug: Name
    source_sha256: Digest
    form: Literal["model", "function"]
    entry: Word
    init: Literally
    """Arguments that the model is constructed with, as a list."""
    init_named: Literally = Field(default="", exclude_if="".__eq__)
    """Arguments of the model that are passed by name, as a dictionary. Empty: none."""
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    """Seed of the generator when the model is constructed, in the reference and in a candidate. It fixes random
    values that aren't in the state dict."""
    dtype: DType
    arguments: Annotated[tuple[Operand | Constant, ...], Field(max_length=64)]
    weights: Annotated[tuple[Weight, ...], Field(max_length=4096)] = ()
    results: Annotated[tuple[Result, ...], Field(min_length=1, max_length=4)]
    kinds: tuple[InputKind, ...] = ()
    """Further kinds of values at which candidates are judged by the reference."""
    finite_kinds: tuple[InputKind, ...] = Field(default=(), exclude_if=is_empty)
    """Other kinds at which the reference is finite, and so must a candidate be. It errs too much there for more. An
    older contract has none."""
    batch: Size = 1
    varies: bool = False
    """True if the reference also ran at other batch sizes."""
    wide: bool = True
    """True if the reference runs in fp64. Otherwise it is its own oracle, with a wider tolerance."""
    axes: tuple[Axis, ...] = Field(default=(), max_length=8, exclude_if=is_empty)
    """Sizes that vary besides the batch, as the user declares them."""
    returned: Literally = Field(default="", exclude_if="".__eq__)
    """Form of what is returned: a literal of tuples and dictionaries with `...` for each result. Empty: the contract
    is older, and any form is accepted."""
    syntax_sha256: Digest | None = Field(default=None, exclude_if=is_unset)
    """Digest of the file's syntax tree, which identifies the operation. None: its bytes do, as in older contracts."""

    @property
    def tensors(self) -> tuple[Operand, ...]:
        """The tensors among the arguments, and those that lie in an argument, in order."""
        return tuple(one for one in self.arguments if isinstance(one, Operand))

    @property
    def shape(self) -> Shape:
        """The frozen size of each axis."""
        return {BATCH: self.batch, **{one.name: one.size for one in self.axes}}

    @property
    def set_bytes(self) -> int:
        """Return the bytes of all operands and results of one call at the frozen sizes, with results in fp64."""
        return self.bytes_at(self.shape)

    def bytes_at(self, shape: Mapping[str, int]) -> int:
        """Return the bytes of all operands and results of one call at a shape, with results in fp64."""
        operands = sum(self.bytes_of(one.element, sizes_at(one.axes, shape)) for one in self.tensors)
        weights = sum(self.bytes_of(one.element, one.sizes) for one in self.weights)
        return operands + weights + sum(8 * math.prod(sizes_at(one.axes, shape)) for one in self.results)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Positions of arguments that may change without the others: each alone, coupled ones together."""
        coupled = tuple(place for place, one in enumerate(self.tensors) if one.coupled)
        alone = tuple((place,) for place, one in enumerate(self.tensors) if not one.coupled)
        return (*alone, coupled) if len(coupled) > 1 else alone

    @property
    def still(self) -> frozenset[int]:
        """Positions of operands whose values must not change places. Arguments are counted first, then weights.

        These are arguments with a structure or coupled to others, and all weights but parameters in the task's
        floating type.
        """
        arguments = [one.drawn.family == "generated" or one.coupled for one in self.tensors]
        weights = [not one.parameter or one.element is not None for one in self.weights]
        return frozenset(place for place, still in enumerate((*arguments, *weights)) if still)

    def bytes_of(self, element: ElementType | None, sizes: tuple[int, ...]) -> int:
        """Return the bytes of one tensor."""
        return math.prod(sizes) * ITEMSIZE_BYTES[element or self.dtype]


def sizes_at(axes: tuple[str, ...], shape: Mapping[str, int]) -> tuple[int, ...]:
    """Return the sizes of a tensor whose axes are named, or fixed numbers."""
    return tuple(int(axis) if axis.isdecimal() else shape[axis] for axis in axes)


def is_own(op: str) -> bool:
    """Return True if the name is that of a user's own operation."""
    return op.startswith(PREFIX)
