"""Turns a frozen contract into an operation whose oracle, reference and inputs ask a guest.

The bound is that of docs/numerics.md with a size S that was measured instead of derived. S is chosen so that `c u_acc
(sqrt(1) + 8) S` is ERROR_FACTOR times the reference's own error at admission, over the current values.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forge.domain.own_operation import Contract, Result
from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF, Shape
from forge.lab.calls.load import arena_bytes_for
from forge.lab.job import Job
from forge.lab.judge import SMALLEST_SIZE
from forge.lab.judge.elementwise import ROUNDINGS_BESIDE_SUM
from forge.lab.reference.allowed_error import ERROR_FACTOR, ROUNDINGS, least_error
from forge.lab.reference.answers import Answers, relative_error, require_answer, rms
from forge.lab.reference.cancelled import usual_sizes, with_cancelled
from forge.lab.reference.drawing import Drawing
from forge.lab.reference.faint import with_faint
from forge.lab.reference.locality import sizes_of
from forge.lab.reference.reference_guest import HERE, AnsweringDevice
from forge.lab.reference.room import SETS_PER_GUEST, with_room
from forge.lab.reference.rounding import widened
from forge.operations.operation import Exact, Expectation, Expected, Operation

if TYPE_CHECKING:
    import torch

Tensors = tuple["torch.Tensor", ...]


@contextmanager
def answered(job: Job) -> Iterator[Job]:
    """Yield the job with an operation that can be asked; an operation of the catalogue needs no guest for that."""
    own = job.operation.own
    if own is None:
        yield job
        return
    with Answers(
        own.contract,
        own.source,
        place=AnsweringDevice(job.device, job.gpu) if job.device == "cuda" else HERE,
        policy=with_room(job.policy, SETS_PER_GUEST * own.contract.set_bytes),
        isolation=job.isolation,
        threads=job.threads,
        arena_bytes=arena_bytes_for(own.contract.set_bytes),
    ) as answers:
        yield dataclasses.replace(job, operation=bound(job.operation, answers, job.policy))


def bound(operation: Operation, answers: Answers, policy: Policy) -> Operation:
    """Return the operation with a reference, an oracle and inputs."""
    contract = answers.contract
    count = len(contract.tensors)

    def reference(*inputs: torch.Tensor) -> Tensors:
        values = require_answer(answers.outputs(inputs, _shape(contract, inputs[:count]), wide=False))
        return tuple(value.to(inputs[0].device) for value in values)

    def oracle(*inputs: torch.Tensor) -> tuple[Expected, ...]:
        values = require_answer(answers.outputs(inputs, _shape(contract, inputs[:count]), wide=contract.wide))
        device = inputs[0].device
        pairs = zip(contract.results, values, strict=True)
        return tuple(expectation(contract, one, value.to(device), policy) for one, value in pairs)

    def reconsidered(expected: tuple[Expected, ...], *inputs: torch.Tensor) -> tuple[Expected, ...]:
        shape = _shape(contract, inputs[:count])
        wide = widened(expected, answers, inputs, shape, policy)
        cancelled = with_cancelled(expected, wide, answers, inputs, policy)
        return with_faint(contract, cancelled, inputs, usual_sizes(answers), policy) if contract.wide else cancelled

    return dataclasses.replace(
        operation,
        reference=reference,
        oracle=oracle,
        oracle_is=lambda: answers.oracle,
        reconsidered=reconsidered,
        draw=Drawing(answers),
        answering_ns=lambda: answers.answering_ns,
    )


def expectation(contract: Contract, result: Result, value: torch.Tensor, policy: Policy) -> Expected:
    """Return the rule by which one output, with the sizes of `value`, is judged.

    Integers and truth values must be equal.
    """
    if not value.is_floating_point():
        return Exact(value)
    import torch

    exact = value.double()
    error = ERROR_FACTOR * max(result.error, least_error(contract)) * rms(exact)
    unit = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * (1 + ROUNDINGS_BESIDE_SUM)
    scale = torch.full_like(exact, error / unit)
    if result.local is not None:
        scale = scale.minimum(ERROR_FACTOR * result.local.error / unit * sizes_of(result.local, exact))
    return Expectation(
        value=exact,
        scale=scale,
        terms=1,
        roundings=ROUNDINGS,
        on_integers="as_usual",
        together=_together(contract, result, exact),
        derived=False,
    )


def _together(contract: Contract, result: Result, exact: torch.Tensor) -> float | None:
    """Return the share that all elements may err by together: two roundings of 16 bits, at the file's own sizes.

    In fp32 a share that size is refused element by element.
    """
    if not contract.wide or contract.dtype == "fp32" or tuple(exact.shape) != result.sizes:
        return None
    return ROUNDINGS * UNIT_ROUNDOFF[contract.dtype]


def errs_within(
    contract: Contract, result: Result, got: torch.Tensor, exact: torch.Tensor, *, times: float = 1.0
) -> bool:
    """Return whether the reference's float result errs at most `times` as much as was measured at its own values.

    `got` and `exact` have the sizes of the result; `times` is a ratio.
    """
    if not relative_error(got, exact, dtype=contract.dtype) <= times * result.error:
        return False
    if result.local is None:
        return True
    exact = exact.double()
    most = times * result.local.error * sizes_of(result.local, exact) + SMALLEST_SIZE[contract.dtype]
    return bool(((got.double() - exact).abs() <= most).all())


def _shape(contract: Contract, tensors: Tensors) -> Shape:
    """Return the size of each axis, as the operands have it; the frozen size if none has it."""
    found = contract.shape
    for one, tensor in zip(contract.tensors, tensors, strict=True):
        found |= {axis: int(size) for axis, size in zip(one.axes, tensor.shape, strict=True) if not axis.isdecimal()}
    return found


def rounded_up(error: float) -> float:
    """Round a relative error up to a power of two, so that small differences between machines vanish; 0 stays 0."""
    return 2.0 ** math.ceil(math.log2(error)) if error > 0 else 0.0
