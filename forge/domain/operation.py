"""What an operation must say about itself: signature, reference, oracle, inputs, bound, cost.

The functions take and give torch tensors; this module only names the types and never imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forge.domain.tensors import DType, TensorSpec

if TYPE_CHECKING:
    import torch

InputKind = Literal[
    "normal", "uniform", "large", "small", "offset_mean", "outlier_channel", "sparse", "constant", "zeros"
]
"""How the values of a workload are drawn; see `forge.lab.inputs`."""


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
    oracle: Callable[..., tuple[Expectation, ...]]
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
