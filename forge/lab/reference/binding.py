"""Turns a frozen contract into an operation whose oracle, reference and inputs ask a guest.

The bound is that of docs/numerics.md with a size S that was measured instead of derived. S is chosen so that `c u_acc
(sqrt(1) + 8) S` is ERROR_FACTOR times the reference's own error at admission, over the current values.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import BATCH, Contract, Generated, Operand, Result, Weight
from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF, DType
from forge.errors import EnvironmentUnfit
from forge.lab.calls.load import arena_bytes_for
from forge.lab.inputs.draw import torch_dtype
from forge.lab.job import Job
from forge.lab.judge import SMALLEST_SIZE
from forge.lab.judge.elementwise import ROUNDINGS_BESIDE_SUM
from forge.lab.reference.answers import Answers, relative_error, rms
from forge.lab.reference.families import draw_family
from forge.lab.reference.locality import sizes_of
from forge.lab.reference.rounding import widened
from forge.operations.operation import Exact, Expectation, Expected, Operation
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

ERROR_FACTOR = 8.0
"""Factor on the reference's own error: another order of summation errs as much, and fused kernels a little more."""
LEAST_ERROR: Mapping[DType, float] = {"fp32": 2.0**-21, "fp16": 2.0**-13, "bf16": 2.0**-10}
"""Error relative to the root mean square that counts at least, by dtype: eight roundings in fp32, a quarter of one
elsewhere. Without it, a reference that only copies would have error 0."""
LEAST_WITHOUT_FP64: Mapping[DType, float] = {"fp32": 2.0**-13, "fp16": 2.0**-10, "bf16": 2.0**-7}
"""Error that counts at least if the reference's error can't be measured in fp64, by dtype: in fp32 a thousandth of
the root mean square after ERROR_FACTOR."""
ROUNDINGS = 2
"""Number of roundings to the output's type that a kernel may make on the way."""
STATES = 3
"""Number of initialisations around which the weights of a judgement are drawn."""
Tensors = tuple["torch.Tensor", ...]


def least_error(contract: Contract) -> float:
    """Return the smallest error that counts for a result."""
    return (LEAST_ERROR if contract.wide else LEAST_WITHOUT_FP64)[contract.dtype]


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
        policy=job.policy,
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
        values = or_unfit(answers.outputs(inputs, _batch(contract, inputs[:count]), wide=False))
        return tuple(value.to(inputs[0].device) for value in values)

    def oracle(*inputs: torch.Tensor) -> tuple[Expected, ...]:
        values = or_unfit(answers.outputs(inputs, _batch(contract, inputs[:count]), wide=contract.wide))
        device = inputs[0].device
        pairs = zip(contract.results, values, strict=True)
        return tuple(expectation(contract, one, value.to(device), policy) for one, value in pairs)

    def reconsidered(expected: tuple[Expected, ...], *inputs: torch.Tensor) -> tuple[Expected, ...]:
        return widened(expected, answers, inputs, _batch(contract, inputs[:count]), policy)

    return dataclasses.replace(
        operation, reference=reference, oracle=oracle, reconsidered=reconsidered, draw=Drawing(answers)
    )


def expectation(contract: Contract, result: Result, value: torch.Tensor, policy: Policy) -> Expected:
    """Return the rule by which one output is judged; integers and truth values must be equal."""
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
        derived=False,
    )


def errs_within(contract: Contract, result: Result, got: torch.Tensor, exact: torch.Tensor) -> bool:
    """Return whether the reference's float result errs no more than was measured at its own values."""
    if not relative_error(got, exact, dtype=contract.dtype) <= result.error:
        return False
    if result.local is None:
        return True
    exact = exact.double()
    most = result.local.error * sizes_of(result.local, exact) + SMALLEST_SIZE[contract.dtype]
    return bool(((got.double() - exact).abs() <= most).all())


class Drawing:
    """Draws operands by their families, and weights near the reference's initial ones."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._states: dict[int, Tensors] = {}

    def __call__(self, shape: Mapping[str, int], kind: InputKind, seed: int) -> Tensors:
        """Draw all operands of one call; the same seed gives the same values."""
        return (*self.operands(shape, kind, seed), *self.weights(seed))

    def operands(self, shape: Mapping[str, int], kind: InputKind, seed: int) -> Tensors:
        """Draw the arguments' tensors."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        contract = self._answers.contract
        generated: Tensors | None = None
        drawn: list[torch.Tensor] = []
        for place, one in enumerate(contract.tensors):
            if isinstance(one.drawn, Generated):
                generated = generated or self._answers.generated(seed % 2**31)
                drawn.append(generated[place])
            else:
                drawn.append(_operand(one, contract, shape[BATCH], kind, generator))
        return tuple(drawn)

    def weights(self, seed: int) -> Tensors:
        """Draw weights near one of a few initialisations, never exactly at one."""
        import torch

        weights = self._answers.contract.weights
        if not weights:
            return ()
        generator = torch.Generator().manual_seed(seed + 1)
        which = seed % STATES
        if which not in self._states:
            self._states[which] = self._answers.state(which)
        return tuple(_weight(one, value, generator) for one, value in zip(weights, self._states[which], strict=True))


def _operand(
    one: Operand, contract: Contract, batch: int, kind: InputKind, generator: torch.Generator
) -> torch.Tensor:
    assert not isinstance(one.drawn, Generated)
    sizes = (batch, *one.sizes[1:]) if one.batched else one.sizes
    return draw_family(one.drawn, sizes, kind, generator).to(torch_dtype(one.element or contract.dtype)).contiguous()


def _weight(one: Weight, value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Change a weight by up to a quarter; biases of zero and running means become nonzero."""
    import torch

    if not value.is_floating_point():
        return value
    moved = value.float() * (1 + 0.25 * (2 * torch.rand(value.shape, generator=generator) - 1))
    is_mean = one.names[0].endswith("running_mean")
    if (one.parameter or is_mean) and not bool(value.any()):
        moved = moved + torch.randn(value.shape, generator=generator) / 16
    return moved.to(value.dtype)


def _batch(contract: Contract, tensors: Tensors) -> int:
    for one, tensor in zip(contract.tensors, tensors, strict=True):
        if one.batched:
            return int(tensor.shape[0])
    return contract.batch


def or_unfit(answer: Tensors | Refused) -> Tensors:
    """Return the answer; raise EnvironmentUnfit if there is none, since a similar question was answered before."""
    if isinstance(answer, Refused):
        log = f"; {answer.log[-300:]}" if answer.log else ""
        raise EnvironmentUnfit(f"the reference failed in its guest: {answer.reason.message}{log}")
    return answer


def rounded_up(error: float) -> float:
    """Round an error up to a power of two, so that another machine's measurement gives the same."""
    return 2.0 ** math.ceil(math.log2(error)) if error > 0 else 0.0
