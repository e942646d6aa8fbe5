"""Makes operands so small that a constant beside them decides the answer, as the eps of a normalisation does.

At the file's own values an eps of 1e-12 changes no bit, so a kernel without it would be right. A kernel may compute
such an answer from larger numbers, as the exponential minus one, or a sigmoid minus a half. So it may err there as
at the file's own values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import Contract, Family, Normal, Operand, Uniform
from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF, DType
from forge.lab.judge.elementwise import ROUNDINGS_BESIDE_SUM
from forge.lab.reference.allowed_error import ERROR_FACTOR, least_error
from forge.lab.reference.answers import rms
from forge.operations.operation import Expectation, Expected

if TYPE_CHECKING:
    import torch

FAINT_KINDS: frozenset[InputKind] = frozenset({"tiny", "rows_apart"})
"""Kinds whose operands are faint: all numbers tiny, or rows of different small sizes."""
TINY_POWERS: Mapping[DType, tuple[int, ...]] = {"fp32": (-48, -36, -24), "bf16": (-48, -36, -24), "fp16": (-9,)}
"""Powers of two of the kind `tiny`, of samples in turn, by dtype. The length of a row of 2^15 numbers of 2^-48 is
below 1e-12, a usual eps. Products of two numbers are still normal ones in fp32. Most numbers of fp16 are normal ones
at its power."""
ROW_POWERS = (-8, -9, -10, -11)
"""Powers of two of the kind `rows_apart`, of rows in turn. The squares are then near the eps of usual norms, from
1e-7 to 1e-5. So the answer stays of its usual size, and a wrong eps shows beside a bias."""
FAINT_SHARE = 2.0**-7
"""Size of an operand, over its size at the file's own values, below which it is faint. It lies between those of
`small` and `rows_apart`."""
LEAST_USUAL = 0.5
"""Share of the deviation by which a normal distribution's mean may differ from zero, if zero is a usual value."""
Tensors = tuple["torch.Tensor", ...]


def may_be_faint(contract: Contract, one: Operand) -> bool:
    """Return whether an operand gets faint values: it has the batch if any has, and zero is one of its values."""
    batched = any(other.batched for other in contract.tensors)
    return one.continuous and (one.batched or not batched) and _has_zero(one.drawn)


def _has_zero(family: Family) -> bool:
    match family:
        case Uniform(low=low, high=high):
            return low <= 0 <= high
        case Normal(mean=mean, deviation=deviation):
            return abs(mean) <= LEAST_USUAL * deviation
        case _:
            return False


def faint(values: torch.Tensor, kind: InputKind, dtype: DType, generator: torch.Generator) -> torch.Tensor:
    """Return values [..., width] times powers of two of a faint kind: one for each sample, or for each row."""
    powers = TINY_POWERS[dtype] if kind == "tiny" else ROW_POWERS
    if not values.numel() or not values.dim():
        return values * 2.0 ** powers[0]
    samples = kind == "tiny" or values.dim() == 1
    parts = values.reshape(values.shape[0] if samples else values.numel() // values.shape[-1], -1)
    return (parts * _in_turn(parts.shape[0], powers, generator)).reshape(values.shape)


def _in_turn(count: int, powers: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Return factors [count, 1] in which powers of two take turns from a random one on; one alone is the first."""
    import torch

    first = int(torch.randint(len(powers), (), generator=generator)) if count > 1 else 0
    return torch.exp2(torch.tensor(powers)[(torch.arange(count) + first) % len(powers)].float()).unsqueeze(-1)


def with_faint(
    contract: Contract,
    rules: Sequence[Expected],
    inputs: Tensors,
    usual: tuple[Sequence[float], Sequence[float]] | None,
    policy: Policy,
) -> tuple[Expected, ...]:
    """Return the rules; where an operand is faint, each element is allowed what it is at the file's own values.

    `usual` are the root mean squares of the file's own operands and of their results.
    """
    if usual is None or not _are_faint(contract, inputs, usual[0]):
        return tuple(rules)
    unit = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * (1 + ROUNDINGS_BESIDE_SUM)
    return tuple(
        replace(
            rule,
            scale=rule.scale + ERROR_FACTOR * max(result.error, least_error(contract)) * there / unit,
            together=None,
        )
        if isinstance(rule, Expectation)
        else rule
        for rule, result, there in zip(rules, contract.results, usual[1], strict=True)
    )


def _are_faint(contract: Contract, inputs: Tensors, usual: Sequence[float]) -> bool:
    return any(
        may_be_faint(contract, one) and 0 < rms(here) < FAINT_SHARE * there
        for one, here, there in zip(contract.tensors, inputs, usual, strict=False)
    )
