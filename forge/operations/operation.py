"""What an operation must say about itself: signature, reference, oracle, inputs, bound, cost.

The functions take and give torch tensors; this module only names the types and never imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from forge.domain.input_kind import InputKind
from forge.domain.relation import Relation, RowsIndependent, RowsPermuted
from forge.domain.tensors import ITEMSIZE_BYTES, DType, LayoutName, TensorSpec

if TYPE_CHECKING:
    import torch

    from forge.domain.own_operation import Contract


SpecialsPolicy = Literal["as_reference", "nan_may_spread", "unspecified"]
"""Rule for outputs when inputs hold NaN or infinities.

- `as_reference`: each output is NaN, infinite or finite exactly where the reference's output is.
- `nan_may_spread`: as above, with two exceptions. Where a row's own values give the reference a NaN, every other sum
  over that row may be NaN too. Where the reference is infinite, NaN is allowed: honest sums (compensated, running,
  padded with zeros) turn an infinity into NaN.
- `unspecified`: any output is allowed.
"""
OnIntegers = Literal["exact", "exact_sums", "as_usual"]
"""Rule for outputs when all inputs are small integers.

- `exact`: equal to the last bit.
- `exact_sums`: sums are exact in any order, so only the steps after the sums may be rounded.
- `as_usual`: the usual bound, for operations whose honest kernels divide on the way, as running means do.
"""


@dataclass(frozen=True)
class Expectation:
    """The value that one output should have, in fp64, and the figures that its error bound is computed from.

    `value` and `scale` have the output's shape. `scale` is S of docs/numerics.md: the sum of the terms' magnitudes.
    """

    value: torch.Tensor
    scale: torch.Tensor
    terms: int
    """Number of terms accumulated for one element: n of docs/numerics.md."""
    roundings: int = 1
    """Number of roundings to the output's dtype that the contract allows on the way."""
    on_integers: OnIntegers = "as_usual"
    """Rule for this output when all inputs are small integers."""
    last_factor: torch.Tensor | None = None
    """Magnitude of the factor that is applied after an intermediate that may be rounded to the output's dtype.

    Near that type's smallest number, the intermediate errs by up to that number. The output then errs by that number
    times this factor. None: there is no such intermediate.
    """
    drift: torch.Tensor | None = None
    """Share of `scale` by which one running sum in fp32 may err beside the usual growth, in the output's shape.

    `drift_share` in `running_sum.py` computes it, or `product` in `tensor_core_sums.py`. None: no such sum.
    """
    together: float | None = None
    """Share by which all elements together may be too large, or too small, by roundings that many have in common.

    Asked at values like a reference file's own. None: it isn't asked.
    """
    derived: bool = True
    """False if `scale` was measured instead of derived. The errors of many elements together then have no bound."""


@dataclass(frozen=True)
class Tied:
    """Indices that equal numbers share, as those of the largest four in a row of zeros: all are right."""

    where: torch.Tensor
    """Mask of these elements."""
    apart: int
    """Axis along which all indices differ."""
    low: int
    high: int
    """Smallest and largest index that was seen."""
    numbers: tuple[torch.Tensor, ...] = ()
    """Operands to whose numbers the indices point; the numbers of a right answer are the expected ones. Empty: they
    point to numbers inside the reference, which nothing shows."""


@dataclass(frozen=True)
class Exact:
    """An output that is compared bit by bit: integers, indices, truth values, or floats that are only copied."""

    value: torch.Tensor
    others: tuple[torch.Tensor, ...] = ()
    """Other values that each element may have: the answers for operands that are a few roundings away. They differ
    from `value` where two numbers nearly tie, as in the index of a largest one."""
    others_share: float = 0.01
    """Share of the elements that may have one of the other values, at most."""
    tied: Tied | None = None
    """Elements that equal numbers share; None: there are none, or the operation has a rule for them."""


Grid = Literal["whole", "fp8_e4m3"]
"""Set of representable numbers: whole numbers, or fp8 e4m3 (spacing from 2^-9 to 32, largest number 448)."""
_FP8_SMALLEST_EXPONENT, _FP8_SIGNIFICAND_BITS, _FP8_LARGEST = -6, 3, 448.0


@dataclass(frozen=True)
class Quantised:
    """An output that is rounded to a coarse grid, such as int8 or fp8."""

    unrounded: torch.Tensor
    """Values before rounding, clamped to the grid's range, in fp64. Unit: grid steps for `whole`, the value for
    fp8."""
    uncertainty: torch.Tensor
    """Largest error that an honest kernel's value may have before it rounds, in the unit of `unrounded`."""
    grid: Grid = "whole"

    @property
    def value(self) -> torch.Tensor:
        """Return `unrounded` rounded to the nearest number of the grid, ties to even."""
        return self.nearest(self.unrounded)

    def nearest(self, values: torch.Tensor) -> torch.Tensor:
        """Return fp64 values rounded to the grid; fp8 saturates (OCP 8-bit floating point specification, 2023)."""
        if self.grid == "whole":
            return values.round()
        exponents = values.frexp().exponent.sub(1).clamp(min=_FP8_SMALLEST_EXPONENT)
        # build powers of two from their bits, because pow isn't exact on every device
        quanta = (exponents.long() - _FP8_SIGNIFICAND_BITS + 1023).bitwise_left_shift(52).view(values.dtype)
        return ((values / quanta).round() * quanta).clamp(-_FP8_LARGEST, _FP8_LARGEST)


@dataclass(frozen=True)
class Ranked:
    """The positions of the largest values of each row, largest first. Equal values may come in any order."""

    values: torch.Tensor
    """Values that are ranked along the last axis, fp64. A row with a NaN has no order, so any positions are
    accepted."""
    uncertainty: torch.Tensor
    """Largest error that an honest kernel may have in each of `values`. Values nearer than this may change places."""
    count: int
    """Number of positions that are returned for each row."""

    @property
    def value(self) -> torch.Tensor:
        """Return one right answer, int64."""
        return self.values.topk(self.count).indices


@dataclass(frozen=True)
class Drawn:
    """One sampled position in each row: the first whose running sum of weights exceeds a given share of their total.

    The share is an operand, so the answer is determined (inverse transform sampling).
    """

    weights: torch.Tensor
    """Weights of the positions, [rows, positions], fp64, not negative. They needn't sum to 1."""
    allowed: torch.Tensor
    """Positions that may be the answer, [rows, positions]. It includes those whose weight is zero only by
    rounding."""
    share: torch.Tensor
    """Share of the total weight that selects the position, [rows], from 0 to 1."""
    uncertainty: torch.Tensor
    """Largest error of an honest kernel's running sums, [rows], as a share of the total weight."""

    @property
    def value(self) -> torch.Tensor:
        """Return the right answer, int64."""
        reached = self.weights.cumsum(-1)
        first = (reached <= (self.share * reached[:, -1]).unsqueeze(-1)).sum(-1)
        last = reached.shape[-1] - 1 - (self.weights > 0).flip(-1).int().argmax(-1)
        return first.minimum(last)


Expected = Expectation | Exact | Quantised | Ranked | Drawn
"""Rule that one output is judged by."""

Function = Callable[..., "torch.Tensor | tuple[torch.Tensor, ...] | None"]
"""Function from inputs and scalars to outputs: one tensor, several, or None if it only updates inputs in place."""


@dataclass(frozen=True)
class OwnReference:
    """The reference file behind a user's own operation. It is foreign code, so it runs only in a guest."""

    contract: Contract
    source: bytes


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation: everything that Forge knows about it before there is a candidate."""

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
    """PyTorch function that defines the operation. It uses no names of its module: its source alone is sent to the
    baseline's guest and printed in the prompt."""
    oracle: Callable[..., tuple[Expected, ...]]
    """Function that computes the same in fp64, on the inputs as given (already rounded to their dtype). Its source is
    part of a task's id, so a change of one word makes other tasks."""
    numerics: str
    """Derivation of the error bound, in words and formulas."""
    bytes_moved: Callable[[Mapping[str, int], DType], int]
    """Function that gives the least traffic in bytes: each input byte read once, each output byte written once."""
    flops: Callable[[Mapping[str, int]], int]
    workloads: tuple[Mapping[str, int], ...]
    """Standard shapes, from decode and prefill of published models."""
    row_axis: str
    """Axis along which results don't depend on each other."""
    reduced_axis: str
    """Axis that is summed over. Odd sizes of it show kernels that leave out the tail."""
    free_axes: tuple[str, ...] = ()
    """Other axes that a kernel must accept in any size. Kernels may leave out tails along these axes too."""
    mutants: Mapping[str, Function] = field(default_factory=dict)
    """Known wrong implementations by name, called like the reference. A task opens only if every one is refused."""
    variants: Mapping[str, Function] = field(default_factory=dict)
    """Right implementations in another order or precision, by name. A task opens only if every one is accepted."""
    guide: str = ""
    """Name of another operation whose guide serves authors of this one too. Empty: a guide names this one."""
    vendor: Function | None = None
    """The operation by torch's own fused operator, if there is one. It is called like the reference and, like it,
    uses no names of its module."""
    reconsidered: Callable[..., tuple[Expected, ...]] | None = None
    """Function from the oracle's rules and the inputs to wider rules, for values at which rounding is magnified. It
    is called only if an answer breaks the oracle's rules."""
    oracle_is: Callable[[], str] | None = None
    """Function that says how the oracle computes, if its reference is a file. None: in fp64, from the definition."""
    reads_in_part: bool = False
    """True if some elements of an input decide nothing, such as keys and values beside queries. They aren't counted
    in `bytes_moved`."""
    updates: tuple[str, ...] = ()
    """Inputs that are written to in place. Each is also an output of the same name, is judged whole, and isn't
    returned. All other inputs must stay unchanged."""
    specials: SpecialsPolicy = "as_reference"
    """Rule for outputs when inputs hold NaN or infinities."""
    masks: bool = False
    """True if verification also draws masked rows, in which some or all values are a very low finite number."""
    layouts: tuple[LayoutName, ...] = ("contiguous", "offset")
    """Memory layouts of inputs that every kernel must accept. A candidate may claim more."""
    relations: tuple[Relation, ...] = (RowsIndependent(), RowsPermuted())
    """Relations that must hold between answers of one kernel. The default holds if rows are independent."""
    still: frozenset[int] = frozenset()
    """Positions of inputs whose values must not change places, such as weights with a structure. Other inputs' values
    are rotated between calls."""
    own: OwnReference | None = None
    """Reference file of a user's own operation. None: the operation is one of the catalogue."""
    draw: Callable[[Mapping[str, int], InputKind, int], tuple[torch.Tensor, ...]] | None = None
    """Function from a shape, a kind and a seed to operands. None: the operands' specifications say how to draw
    them."""
    answering_ns: Callable[[], int] | None = None
    """Function that gives the nanoseconds in which guests answered for the reference so far. Waits for a processor
    don't count. None: the reference runs in the caller's process."""

    def oracle_bytes(self, shape: Mapping[str, int]) -> int:
        """Return the size of all operands together in bytes, in fp64: what the oracle's arithmetic has of them."""
        return sum(math.prod(spec.sizes(shape)) for spec in (*self.inputs, *self.returned)) * ITEMSIZE_BYTES["fp64"]

    def operand_bytes(self, shape: Mapping[str, int], dtype: DType) -> int:
        """Return the size of all operands together in bytes, whether a kernel touches them or not."""
        operands = (*self.inputs, *self.returned)
        return sum(math.prod(spec.sizes(shape)) * ITEMSIZE_BYTES[spec.element_type(dtype)] for spec in operands)

    def written_bytes(self, shape: Mapping[str, int], dtype: DType) -> int:
        """Return the output bytes among the bytes moved.

        If inputs are updated in place, this is half of the bytes moved: the other half is what was read.
        """
        if self.updates:
            return self.bytes_moved(shape, dtype) // 2
        return sum(math.prod(spec.sizes(shape)) * ITEMSIZE_BYTES[spec.element_type(dtype)] for spec in self.outputs)

    @property
    def returned(self) -> tuple[TensorSpec, ...]:
        """The outputs that a call returns: all but the inputs updated in place."""
        return tuple(spec for spec in self.outputs if spec.name not in self.updates)

    @property
    def weights(self) -> frozenset[int]:
        """Positions of inputs that all rows share and that no call changes, such as a module's parameters."""
        shared = (self.row_axis not in spec.axes and spec.name not in self.updates for spec in self.inputs)
        return frozenset(place for place, is_shared in enumerate(shared) if is_shared)

    @property
    def activations(self) -> tuple[TensorSpec, ...]:
        """The inputs with rows whose values follow the workload's kind: floats, not indices."""
        return tuple(spec for spec in self.inputs if self.row_axis in spec.axes and spec.follows_kind)
