"""Parts of gates' questions as they are sent to a process that asks them, and its answers, all in JSON.

No class and no closure crosses: the other process has the same Forge, and finds the gate by its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Literal, assert_never

from pydantic import Field

from forge.domain.evidence import Counterexample, WorkloadErrors
from forge.domain.input_kind import InputKind
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.asked_gates import GateAsked, ask, loaded_alone
from forge.lab.calls.load import staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates import GATES
from forge.lab.gates.gate import Gate
from forge.lab.job import Job
from forge.lab.observed import Case
from forge.lab.sent_job import Sent, SentJob, received, sent
from forge.sandbox.stage import Stage
from forge.sandbox.zygote import Zygote

if TYPE_CHECKING:
    import torch

MOST_CASE_BYTES = 2**26
"""Size in bytes of a failing call's inputs, at most, that are sent back to look for a smaller one. Chosen; larger
ones take seconds to send."""


class AskedCandidate(Sent):
    """The candidate that is asked."""

    job: SentJob
    files: dict[str, bytes]
    configurations: int
    """Largest number of configurations of an autotuned kernel so far."""


class AskedPart(Sent):
    """One part of a gate."""

    gate: str
    place: int


class SentTensor(Sent):
    """A tensor's bytes."""

    dtype: str
    sizes: tuple[int, ...]
    content: bytes


class SentCase(Sent):
    """The call with the wrong answer."""

    shape: dict[str, int]
    kind: InputKind
    seed: int
    inputs: tuple[SentTensor, ...]
    scalars: tuple[float, ...]


class SentPassed(Sent):
    """The candidate passed."""

    found: Literal["passed"] = "passed"
    observed: str
    threshold: str
    errors: tuple[WorkloadErrors, ...]
    calls: int


class SentNotAsked(Sent):
    """The candidate wasn't asked."""

    found: Literal["not asked"] = "not asked"
    observed: str
    threshold: str


class SentFailed(Sent):
    """The candidate is refused."""

    found: Literal["failed"] = "failed"
    reason: Reason
    observed: str
    threshold: str
    counterexample: Counterexample | None
    case: SentCase | None
    log: str
    raised: bool


class PartAnswer(Sent):
    """The answer to a part, or why this machine has none."""

    finding: Annotated[SentPassed | SentNotAsked | SentFailed, Field(discriminator="found")] | None = None
    seeds: tuple[int, ...] = ()
    saw_held_out: bool = False
    unfit: str = ""
    hint: str | None = None


def asked_candidate(job: Job, files: Mapping[str, bytes], configurations: int) -> bytes:
    """Return a candidate as it is sent, before parts of gates."""
    return AskedCandidate(job=sent(job), files=dict(files), configurations=configurations).model_dump_json().encode()


def asked_part(gate: Gate, place: int) -> bytes:
    """Return a part of a gate as it is sent."""
    return AskedPart(gate=gate.name, place=place).model_dump_json().encode()


def answers(requests: Iterator[bytes], zygote: Zygote | None) -> Iterator[bytes]:
    """Yield the answer to each part that is sent after a candidate, in guests that are forked from the zygote."""
    asked = AskedCandidate.model_validate_json(next(requests))
    job = received(asked.job)
    with staged(job, asked.files, {}) as stage, _Guest(job, stage.forked_from(zygote), asked.configurations) as guest:
        for request in requests:
            part = AskedPart.model_validate_json(request)
            try:
                found = guest.ask(_gate(part.gate).parts[part.place])
            except EnvironmentUnfit as error:
                said = PartAnswer(unfit=error.message, hint=error.hint)
            else:
                finding = _sent_finding(found.finding)
                said = PartAnswer(finding=finding, seeds=found.seeds, saw_held_out=found.saw_held_out)
            yield said.model_dump_json().encode()


class _Guest:
    """The guest that is asked one part after the other, until it has to be a new one."""

    def __init__(self, job: Job, stage: Stage, configurations: int) -> None:
        self._job, self._stage, self._configurations = job, stage, configurations
        self._held = ExitStack()
        self._kernel: LoadedKernel | None = None

    def __enter__(self) -> _Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def ask(self, part: Gate) -> GateAsked:
        """Ask a part; a new guest is asked first, after a refusal, and where the gate needs one."""
        if part.own_guest or self._kernel is None:
            self._held.close()
            self._kernel = None
            kernel = self._held.enter_context(loaded_alone(self._job, self._stage, part, self._configurations))
            if isinstance(kernel, Failed):
                return GateAsked(finding=kernel)
            self._kernel = kernel
        kernel, self._kernel = self._kernel, None  # one that is left by an exception isn't asked again
        found = ask(kernel, part)
        self._kernel = None if found.refuses else kernel
        return found


def answered(said: bytes) -> GateAsked:
    """Return the answer that was sent; raise EnvironmentUnfit if there is none."""
    part = PartAnswer.model_validate_json(said)
    if part.finding is None:
        raise EnvironmentUnfit(part.unfit, hint=part.hint)
    return GateAsked(finding=_finding(part.finding), seeds=part.seeds, saw_held_out=part.saw_held_out)


def _gate(name: str) -> Gate:
    return next(gate for gate in GATES if gate.name == name)


def _sent_finding(finding: Finding) -> SentPassed | SentNotAsked | SentFailed:
    match finding:
        case Passed():
            return SentPassed(
                observed=finding.observed, threshold=finding.threshold, errors=finding.errors, calls=finding.calls
            )
        case NotAsked():
            return SentNotAsked(observed=finding.observed, threshold=finding.threshold)
        case Failed():
            return SentFailed(
                reason=finding.reason,
                observed=finding.observed,
                threshold=finding.threshold,
                counterexample=finding.counterexample,
                case=_sent_case(finding.case),
                log=finding.log,
                raised=finding.raised,
            )
        case _:
            assert_never(finding)


def _finding(said: SentPassed | SentNotAsked | SentFailed) -> Finding:
    match said:
        case SentPassed():
            return Passed(observed=said.observed, threshold=said.threshold, errors=said.errors, calls=said.calls)
        case SentNotAsked():
            return NotAsked(observed=said.observed, threshold=said.threshold)
        case SentFailed():
            return Failed(
                reason=said.reason,
                observed=said.observed,
                threshold=said.threshold,
                counterexample=said.counterexample,
                case=None if said.case is None else _case(said.case),
                log=said.log,
                raised=said.raised,
            )
        case _:
            assert_never(said)


def _sent_case(case: Case | None) -> SentCase | None:
    if case is None or sum(one.nbytes for one in case.inputs) > MOST_CASE_BYTES:
        return None
    return SentCase(
        shape=dict(case.shape),
        kind=case.kind,
        seed=case.seed,
        inputs=tuple(map(_sent_tensor, case.inputs)),
        scalars=case.scalars,
    )


def _case(said: SentCase) -> Case:
    inputs = tuple(map(_tensor, said.inputs))
    return Case(shape=said.shape, kind=said.kind, seed=said.seed, inputs=inputs, scalars=said.scalars)


def _sent_tensor(tensor: torch.Tensor) -> SentTensor:
    import torch

    content = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return SentTensor(dtype=str(tensor.dtype).removeprefix("torch."), sizes=tuple(tensor.shape), content=content)


def _tensor(said: SentTensor) -> torch.Tensor:
    import torch

    dtype: torch.dtype = getattr(torch, said.dtype)
    if not math.prod(said.sizes):
        return torch.empty(said.sizes, dtype=dtype)
    return torch.frombuffer(bytearray(said.content), dtype=torch.uint8).view(dtype).view(said.sizes)
