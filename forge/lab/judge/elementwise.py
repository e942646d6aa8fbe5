"""Judges floats against the oracle: each element must be within its bound.

The bound is roughly `max(m x the baseline's own error in the row, by S; r u_out |y*| + c u_acc (sqrt(n) + 8) S)`.
It is derived in docs/numerics.md. Acceptance is written positively, so a NaN anywhere is a refusal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF, DType
from forge.lab.judge.row_blocks import for_each_block, row_blocks
from forge.lab.largest import first_largest
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch

SMALLEST_SIZE: dict[DType, float] = {"fp32": 2.0**-126, "bf16": 2.0**-126, "fp16": 2.0**-24}
"""Absolute error that is always allowed, by dtype: the smallest normal number, since flushing to zero is common
practice. Fp16's normal numbers end at 6e-5, so there it is the smallest subnormal one."""
FLUSHED_TERM = 2.0**-126
"""Absolute error that each term of a sum may add: the smallest normal fp32 number. Sums are accumulated in fp32, and
hardware may set a subnormal term or partial sum to zero. Atomic additions to a GPU's global memory do it."""
SOME_BLOCKS = 8
"""Number of blocks of rows that a first look at a large output judges. Chosen; it takes a few milliseconds."""
ROUNDINGS_BESIDE_SUM = 8.0
"""Number of roundings outside the sum: the division, the root, the multiplications."""


@dataclass(frozen=True)
class JudgedOutput:
    """The distance of one output from its expected value."""

    within: bool
    finite: bool
    max_relative_error: float
    """Largest |y - y*| / S where S > 0."""
    bound_used: float
    """Largest |y - y*| / bound; infinite if the output isn't finite."""
    worst: tuple[int, ...]
    """Index of the element that used most of its bound."""
    expected: float
    got: float
    allowed_error: float
    wrong: torch.Tensor | None = field(default=None, compare=False, repr=False)
    """Mask of the elements outside their bound; None if all are within."""
    together: str = ""
    """Fault of all elements together, in words. Empty: there is none, or single elements are wrong."""


NOTHING_TO_JUDGE = JudgedOutput(True, True, 0.0, 0.0, (), 0.0, 0.0, 0.0)
"""Verdict on an output without elements: it is right."""


def judge_floats(
    got: torch.Tensor,
    expectation: Expectation,
    baseline: torch.Tensor,
    *,
    dtype: DType,
    policy: Policy,
    patterned: bool = False,
    integers: bool = False,
) -> JudgedOutput:
    """Judge one output by the oracle; `baseline` is the reference's output in the working dtype.

    `patterned` inputs repeat one value, so that rounding errors add up instead of cancelling: the worst-case growth n
    replaces sqrt(n) + 8 there. `integers` are inputs whose sums are exact in any order.

    The tensors are [..., width], with the sizes of the output; rows are slices along the last axis.
    """
    import torch

    def judge_rows(got: torch.Tensor, expectation: Expectation, baseline: torch.Tensor) -> JudgedOutput:
        if integers and expectation.on_integers == "exact":
            return _judge_rows(got, expectation, bound=torch.zeros_like(expectation.value))
        growth = _growth(expectation, patterned=patterned, integers=integers)
        return _judge_rows(got, expectation, bound=allowed(expectation, baseline, growth, dtype=dtype, policy=policy))

    blocks = row_blocks(got)
    results = for_each_block(judge_rows, blocks, got, expectation, baseline)
    if len(blocks) == 1:
        return results[0]
    place = max(range(len(results)), key=lambda place: results[place].bound_used)
    worst = results[place]
    row, column = worst.worst
    return replace(
        worst,
        worst=index_of((blocks[place].start + row) * got.shape[-1] + column, got.shape),
        within=all(one.within for one in results),
        wrong=_joined(results, blocks, got),
        max_relative_error=max(one.max_relative_error for one in results),
    )


def _joined(results: Sequence[JudgedOutput], blocks: Sequence[slice], got: torch.Tensor) -> torch.Tensor | None:
    """Return the mask of an output's wrong elements from those of its blocks of rows; None if there are none."""
    import torch

    if all(one.wrong is None for one in results):
        return None
    mask = torch.zeros(got.shape, dtype=torch.bool, device=got.device)
    rows = mask.flatten(0, -2)
    for block, one in zip(blocks, results, strict=True):
        if one.wrong is not None:
            rows[block] = one.wrong
    return mask


def within_in_some(
    got: torch.Tensor, expectation: Expectation, baseline: torch.Tensor, *, dtype: DType, policy: Policy
) -> bool:
    """Return whether some rows of a large output are within their bounds; True for a small output.

    False means that `judge_floats` would refuse the output too; this costs a small share of its time. True says
    nothing of the other rows.

    The tensors are [..., width], with the sizes of the output.
    """
    blocks = row_blocks(got)
    if len(blocks) <= SOME_BLOCKS:
        return True

    def within(got: torch.Tensor, expectation: Expectation, baseline: torch.Tensor) -> bool:
        return _judge_rows(got, expectation, bound=allowed(expectation, baseline, dtype=dtype, policy=policy)).within

    return all(for_each_block(within, blocks[:: len(blocks) // SOME_BLOCKS], got, expectation, baseline))


def _judge_rows(got: torch.Tensor, expectation: Expectation, *, bound: torch.Tensor) -> JudgedOutput:
    import torch

    value = expectation.value
    error = (got.double() - value).abs_()
    used = error / bound
    if not _all_finite(used):  # a bound of zero, or a number that isn't finite
        used = torch.where(error == 0, error, used).nan_to_num(nan=math.inf, posinf=math.inf)
        if not bool(got.isfinite().all()):
            used = torch.where(_overflown(got, value, bound), 0.0, used)
    return judged(got, expectation, error, bound, used)


def _all_finite(tensor: torch.Tensor) -> bool:
    """Return whether numbers that aren't negative are all finite: one pass over them, where `isfinite` takes five."""
    return math.isfinite(float(tensor.amax()))  # which is a NaN if there is one


def _overflown(got: torch.Tensor, value: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    """Return where an infinity is right: some finite value within the bound overflows the output's type."""
    reached = (value.abs() + bound).to(got.dtype)
    return got.isinf() & reached.isinf() & (got.sign().double() == value.sign())


def judged(
    got: torch.Tensor, expectation: Expectation, error: torch.Tensor, bound: torch.Tensor, used: torch.Tensor
) -> JudgedOutput:
    """Return the verdict on one output, from each element's error and its used share of the bound.

    The tensors have the sizes of the output.
    """
    worst = index_of_largest(used)
    most_used, got_there = float(used[worst]), float(got[worst])
    within = most_used <= 1  # False for a NaN, which counts as the largest
    relative = error / expectation.scale
    if not _all_finite(relative):  # 0 where the scale is 0
        relative = relative.nan_to_num(nan=0.0, posinf=0.0)
    return JudgedOutput(
        within=within,
        wrong=None if within else ~(used <= 1),
        finite=math.isfinite(got_there),
        max_relative_error=float(relative.amax()),
        bound_used=most_used,
        worst=worst,
        expected=float(expectation.value[worst]),
        got=got_there,
        allowed_error=float(bound[worst]),
    )


def index_of_largest(values: torch.Tensor) -> tuple[int, ...]:
    """Return the index of the first of the largest elements; a NaN counts as the largest."""
    return index_of(int(first_largest(values.flatten())), values.shape)


def index_of(flat: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the index of the element at place `flat` of a dense tensor."""
    index: list[int] = []
    for size in reversed(sizes):
        flat, rest = divmod(flat, size)
        index.append(rest)
    return tuple(reversed(index))


def plainly_within(got: torch.Tensor, expectation: Expectation, *, dtype: DType, policy: Policy) -> bool:
    """Return whether every element is within what a good kernel reaches, without the baseline's errors.

    The full bound is at least this one, so True here means True there, at a third of the cost.

    `got` is [..., width], as the expectation's value.
    """

    def plain(got: torch.Tensor, expectation: Expectation, _: torch.Tensor) -> bool:
        error = got.double().sub_(expectation.value).abs_()
        growth = _growth(expectation, patterned=False, integers=False)
        reachable = _reachable(expectation, growth, dtype=dtype, policy=policy)
        return _all_finite(error) and bool((error <= reachable).all())  # no infinity is plainly right

    return not got.numel() or all(for_each_block(plain, row_blocks(got), got, expectation, got))


def spread(
    one: torch.Tensor, other: torch.Tensor, expectation: Expectation, *, dtype: DType, policy: Policy
) -> float:
    """Return how far two answers of one kernel to the same question differ, in units of what rounding explains.

    Each answer may be rounded to another neighbour of a value, which is one rounding more than in the bound of one
    answer.

    Both answers are [..., width], as the expectation's value. The result is a ratio: 1 is all that rounding explains.
    """
    import torch

    growth = _growth(expectation, patterned=False, integers=False)
    reachable = _reachable(expectation, growth, dtype=dtype, policy=policy)
    explained = reachable + expectation.roundings * UNIT_ROUNDOFF[dtype] * expectation.value.abs()
    distance = (one.double() - other.double()).abs()
    same = (one == other) | (one.isnan() & other.isnan())
    used = torch.where(same, torch.zeros_like(distance), distance / explained).nan_to_num(
        nan=math.inf, posinf=math.inf
    )
    return float(used.max()) if used.numel() else 0.0


def _growth(expectation: Expectation, *, patterned: bool, integers: bool) -> float:
    if integers and expectation.on_integers == "exact_sums":
        return ROUNDINGS_BESIDE_SUM
    return (expectation.terms if patterned else math.sqrt(expectation.terms)) + ROUNDINGS_BESIDE_SUM


def _reachable(expectation: Expectation, growth: float, *, dtype: DType, policy: Policy) -> torch.Tensor:
    rounded = expectation.roundings * UNIT_ROUNDOFF[dtype]
    accumulated = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * growth
    bound = expectation.value.abs().mul_(rounded)
    bound.add_(expectation.scale, alpha=accumulated)
    bound.add_(SMALLEST_SIZE[dtype] + max(0, expectation.terms - 1) * FLUSHED_TERM)
    if expectation.last_factor is not None:
        bound.add_(expectation.last_factor, alpha=SMALLEST_SIZE[dtype])
    if expectation.drift is not None:
        bound.addcmul_(expectation.scale, expectation.drift)
    return bound


def allowed(
    expectation: Expectation, baseline: torch.Tensor, growth: float | None = None, *, dtype: DType, policy: Policy
) -> torch.Tensor:
    """Return the bound of each element, in the units of its value and with the sizes of the output."""
    import torch

    value = expectation.value
    if growth is None:
        growth = _growth(expectation, patterned=False, integers=False)
    own = (baseline.double() - value).abs_()
    if not _all_finite(own):
        own.nan_to_num_(nan=0.0, posinf=0.0)
    if value.dim() > 1:
        own = own.amax(-1, keepdim=True).minimum(_in_proportion(own, expectation.scale, dtype))
    reachable = _reachable(expectation, growth, dtype=dtype, policy=policy)
    return torch.maximum(own.mul_(policy.tolerance_baseline_multiple), reachable)


def _in_proportion(errors: torch.Tensor, scale: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Return the row's largest ratio of error to scale, times each element's scale.

    The result is at least each element's own error. Near the smallest numbers of the type all errors have one size,
    and say nothing about the row's. A scale without a value bounds nothing.
    """
    ratios = (errors - SMALLEST_SIZE[dtype]).clamp_(min=0).div_(scale)
    largest = ratios.amax(-1, keepdim=True)
    if not _all_finite(largest):
        largest = ratios.nan_to_num_(nan=0.0, posinf=0.0).amax(-1, keepdim=True)
    return (largest * scale).nan_to_num_(nan=math.inf).maximum(errors)
