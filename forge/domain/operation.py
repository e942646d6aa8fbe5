"""What an operation must say about itself: signature, reference, oracle, inputs, bound, cost.

The functions take and give torch tensors; this module only names the types and never imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from forge.domain.relation import Relation, RowsIndependent, RowsPermuted
from forge.domain.tensors import ITEMSIZE_BYTES, DType, LayoutName, TensorSpec

if TYPE_CHECKING:
    import torch

    from forge.domain.own_operation import Contract

InputKind = Literal[
    "normal",
    "uniform",
    "large",
    "small",
    "tiny",
    "offset_mean",
    "offset_operands",
    "outlier_channel",
    "rows_apart",
    "sparse",
    "single",
    "padded",
    "ordered",
    "heavy_tails",
    "ties",
    "constant",
    "zeros",
    "zero_rows",
    "weights_near_one",
    "masked",
    "integers",
    "subnormal",
    "special_rows",
    "special_weights",
]
"""How the values of a workload are drawn; see `forge.lab.kinds`."""

SpecialsPolicy = Literal["as_reference", "nan_may_spread", "unspecified"]
"""What NaN and infinities among the inputs make of the outputs: what they make of the reference's; that, but where a
row's own values give the reference a NaN the rest of what was summed over that row may be NaN too, and so may what is
infinite, since honest sums (compensated, running, padded with zeros) make NaN of an infinity; or anything."""
OnIntegers = Literal["exact", "exact_sums", "as_usual"]


@dataclass(frozen=True)
class Expectation:
    """What one output should be, in fp64, and how far an honest kernel may be from it.

    `value` and `scale` have the output's shape; `scale` is S of docs/numerics.md, the size of what was summed.
    """

    value: torch.Tensor
    scale: torch.Tensor
    terms: int
    """n: how many terms were accumulated for one element."""
    roundings: int = 1
    """How many roundings to the output's dtype the contract allows on the way."""
    on_integers: OnIntegers = "as_usual"
    """What inputs of small integers make of it: equal to the last bit; right but for what follows sums that are
    exact in any order; or as usual, since honest kernels divide on the way, as running means do."""
    last_factor: torch.Tensor | None = None
    """What an intermediate that may be rounded to the output's dtype is multiplied by afterwards, as a size: where
    that type ends, the intermediate errs by its smallest number and the output by so many of them."""


@dataclass(frozen=True)
class Exact:
    """Integers, indices, truth values, or floats that are copied bit by bit: each is right or wrong."""

    value: torch.Tensor


Grid = Literal["whole", "fp8_e4m3"]
"""What can be represented: whole numbers; or fp8 e4m3, whose neighbours are 2^-9 to 32 apart, up to 448."""
_FP8_SMALLEST_EXPONENT, _FP8_SIGNIFICAND_BITS, _FP8_LARGEST = -6, 3, 448.0


@dataclass(frozen=True)
class Quantised:
    """Numbers of a coarse grid that a value was rounded to."""

    unrounded: torch.Tensor
    """In quanta (whole numbers) or as it is (fp8), fp64: before the rounding, and already within the range."""
    uncertainty: torch.Tensor
    """How far an honest kernel's value may be from `unrounded`, in the same unit, before it rounds."""
    grid: Grid = "whole"

    @property
    def value(self) -> torch.Tensor:
        """Rounded to the nearest number of the grid, ties to even."""
        return self.nearest(self.unrounded)

    def nearest(self, values: torch.Tensor) -> torch.Tensor:
        """Values in fp64, rounded to the grid; fp8 saturates (OCP 8-bit floating point specification, 2023)."""
        if self.grid == "whole":
            return values.round()
        exponents = values.frexp().exponent.sub(1).clamp(min=_FP8_SMALLEST_EXPONENT)
        # powers of two by their bits: not every device's pow is exact
        quanta = (exponents.long() - _FP8_SIGNIFICAND_BITS + 1023).bitwise_left_shift(52).view(values.dtype)
        return ((values / quanta).round() * quanta).clamp(-_FP8_LARGEST, _FP8_LARGEST)


@dataclass(frozen=True)
class Ranked:
    """Positions of the largest values of each row, largest first; any of several that are equally large."""

    values: torch.Tensor
    """What is ranked along the last axis, fp64; a row with a NaN has no order, and any positions will do."""
    uncertainty: torch.Tensor
    """How far an honest kernel's value may be from each of `values`: two that are nearer can't be told apart."""
    count: int
    """How many positions are wanted."""

    @property
    def value(self) -> torch.Tensor:
        """One right answer, int64."""
        return self.values.topk(self.count).indices


@dataclass(frozen=True)
class Drawn:
    """A position in each row, drawn by a number: the first up to which the weights reach that share of their sum."""

    weights: torch.Tensor
    """[rows, positions], fp64, never negative, of any sum."""
    allowed: torch.Tensor
    """[rows, positions]: whether it may be drawn at all, also where it has no weight by too little to be told."""
    share: torch.Tensor
    """[rows], from 0 to 1."""
    uncertainty: torch.Tensor
    """[rows]: how far an honest kernel's running sums may be off, as a share of the whole."""

    @property
    def value(self) -> torch.Tensor:
        """The right answer, int64."""
        reached = self.weights.cumsum(-1)
        first = (reached <= (self.share * reached[:, -1]).unsqueeze(-1)).sum(-1)
        last = reached.shape[-1] - 1 - (self.weights > 0).flip(-1).int().argmax(-1)
        return first.minimum(last)


Expected = Expectation | Exact | Quantised | Ranked | Drawn
"""The rule that an output is judged by."""

Function = Callable[..., "torch.Tensor | tuple[torch.Tensor, ...] | None"]
"""Inputs and scalars in, the outputs that aren't updated inputs out: one tensor, several, or nothing."""


@dataclass(frozen=True)
class OwnReference:
    """What an operation of the user's own was made of: foreign code, which runs in a guest alone."""

    contract: Contract
    source: bytes


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of the catalogue: everything that can be known without a candidate."""

    name: str
    summary: str
    axes: tuple[str, ...]
    inputs: tuple[TensorSpec, ...]
    scalars: Mapping[str, float]
    """Scalar arguments after the tensors, with their defaults."""
    outputs: tuple[TensorSpec, ...]
    dtypes: tuple[DType, ...]
    signature: str
    reference: Function
    """The PyTorch function that states the contract; self-contained, for its source travels to the baseline's
    guest and into the prompt."""
    oracle: Callable[..., tuple[Expected, ...]]
    """The same mathematics in fp64, on the inputs as given (already rounded to their dtype)."""
    numerics: str
    """The derivation of the bound, in plain words and formulas."""
    bytes_moved: Callable[[Mapping[str, int], DType], int]
    """Least traffic: each input byte read once, each output byte written once."""
    flops: Callable[[Mapping[str, int]], int]
    workloads: tuple[Mapping[str, int], ...]
    """Standard shapes, decode and prefill of published models."""
    row_axis: str
    """The axis along which results are independent of each other."""
    reduced_axis: str
    """The axis that is summed over: the one whose odd sizes find missing tails."""
    free_axes: tuple[str, ...] = ()
    """Axes beside these two that a kernel must take in any size: it may have tails along them as well."""
    mutants: Mapping[str, Function] = field(default_factory=dict)
    """What an implementation gets wrong, by name, called like the reference: a task opens only if each is refused."""
    variants: Mapping[str, Function] = field(default_factory=dict)
    """The same mathematics in another order or precision: a task opens only if each is accepted."""
    vendor: Function | None = None
    """The same through torch's own fused operator, where there is one; called like the reference, and as
    self-contained, for its source travels too."""
    reconsidered: Callable[..., tuple[Expected, ...]] | None = None
    """The oracle's rules and the inputs, to rules that know more of how rounding is magnified at these values: asked
    where an answer is beyond the first."""
    updates: tuple[str, ...] = ()
    """Inputs that are written to in place: each is an output of the same name, judged as a whole, and isn't returned.
    All other inputs stay as they are."""
    specials: SpecialsPolicy = "as_reference"
    masks: bool = False
    """Whether rows are asked of which masks have left a part, or nothing but the lowest finite number."""
    layouts: tuple[LayoutName, ...] = ("contiguous", "offset")
    """Layouts of inputs that every kernel must take; a candidate may claim more."""
    relations: tuple[Relation, ...] = (RowsIndependent(), RowsPermuted())
    """What must hold between answers of one kernel; true of every operation whose rows are independent."""
    still: frozenset[int] = frozenset()
    """Places of inputs whose values belong where they stand: contents move on within the others alone."""
    own: OwnReference | None = None
    """Where it comes from, if it isn't of the catalogue."""
    draw: Callable[[Mapping[str, int], InputKind, int], tuple[torch.Tensor, ...]] | None = None
    """How operands are drawn at a shape, as a kind, from a seed, where the specifications don't say all of it."""

    def operand_bytes(self, shape: Mapping[str, int], dtype: DType) -> int:
        """What all operands take together, touched or not."""
        operands = (*self.inputs, *self.returned)
        return sum(math.prod(spec.sizes(shape)) * ITEMSIZE_BYTES[spec.element_type(dtype)] for spec in operands)

    def written_bytes(self, shape: Mapping[str, int], dtype: DType) -> int:
        """Of the bytes moved, those of the outputs; half of them where inputs are updated, with what was read."""
        if self.updates:
            return self.bytes_moved(shape, dtype) // 2
        return sum(math.prod(spec.sizes(shape)) * ITEMSIZE_BYTES[spec.element_type(dtype)] for spec in self.outputs)

    @property
    def returned(self) -> tuple[TensorSpec, ...]:
        """The outputs that a call returns: all that aren't updated inputs."""
        return tuple(spec for spec in self.outputs if spec.name not in self.updates)

    @property
    def weights(self) -> frozenset[int]:
        """Places of inputs that all rows share and that stay as they are: what a module would keep."""
        shared = (self.row_axis not in spec.axes and spec.name not in self.updates for spec in self.inputs)
        return frozenset(place for place, is_shared in enumerate(shared) if is_shared)

    @property
    def activations(self) -> tuple[TensorSpec, ...]:
        """The inputs with rows whose values the kinds of workloads are about: floats, no indices."""
        return tuple(spec for spec in self.inputs if self.row_axis in spec.axes and spec.follows_kind)
