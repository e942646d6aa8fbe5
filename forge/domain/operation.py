"""What an operation must say about itself: signature, reference, oracle, inputs, bound, cost.

The functions take and give torch tensors; this module only names the types and never imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from forge.domain.relation import Relation, RowsIndependent, RowsPermuted
from forge.domain.tensors import DType, LayoutName, TensorSpec

if TYPE_CHECKING:
    import torch

InputKind = Literal[
    "normal",
    "uniform",
    "large",
    "small",
    "tiny",
    "offset_mean",
    "outlier_channel",
    "sparse",
    "heavy_tails",
    "ties",
    "constant",
    "zeros",
    "zero_rows",
    "weights_near_one",
    "integers",
    "subnormal",
    "special_rows",
    "special_weights",
]
"""How the values of a workload are drawn; see `forge.lab.inputs`."""

SpecialsPolicy = Literal["as_reference", "nan_may_spread", "unspecified"]
"""What NaN and infinities among the inputs make of the outputs: what they make of the reference's; that, but where a
row's own values give the reference a NaN the rest of what was summed over that row may be NaN too, since honest sums
(compensated, running) make NaN of an infinity; or anything."""
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


@dataclass(frozen=True)
class Exact:
    """Integers, indices or truth values: each is right or wrong."""

    value: torch.Tensor


@dataclass(frozen=True)
class Quantised:
    """Whole numbers that a value was rounded to."""

    unrounded: torch.Tensor
    """In quanta, fp64: before the rounding, and already within the range."""
    uncertainty: torch.Tensor
    """How far an honest kernel's value may be from `unrounded`, in quanta, before it rounds."""

    @property
    def value(self) -> torch.Tensor:
        """Rounded to the nearest whole number, ties to even."""
        return self.unrounded.round()


Expected = Expectation | Exact | Quantised
"""The rule that an output is judged by."""


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
    reference: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
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
    mutants: Mapping[str, Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]] = field(default_factory=dict)
    """What an implementation gets wrong, by name, called like the reference: a task opens only if each is refused."""
    variants: Mapping[str, Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]] = field(default_factory=dict)
    """The same mathematics in another order or precision: a task opens only if each is accepted."""
    specials: SpecialsPolicy = "as_reference"
    layouts: tuple[LayoutName, ...] = ("contiguous", "offset")
    """Layouts of inputs that every kernel must take; a candidate may claim more."""
    relations: tuple[Relation, ...] = (RowsIndependent(), RowsPermuted())
    """What must hold between answers of one kernel; true of every operation whose rows are independent."""
