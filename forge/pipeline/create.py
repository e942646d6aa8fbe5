"""Phase 1: freeze what is wanted."""

import inspect
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.policy import Policy
from forge.domain.task import BaselineChoice, HeldOut, Objective, Task
from forge.domain.tensors import parse_dtype, parse_shape
from forge.errors import UsageError
from forge.events import TaskCreated
from forge.languages import find_language
from forge.operations import find_operation, reference_source, tolerance_digest
from forge.pipeline.outcome import Outcome
from forge.platforms import find_target

HELD_OUT_SHAPES = 8


@dataclass(frozen=True, kw_only=True)
class Request:
    """A task as it is asked for: text from outside."""

    op: str
    language: str
    gpu: str
    dtype: str
    shape: str
    objective: Objective = "latency"
    minimum_speedup: float | None = None
    baseline: BaselineChoice = "best"
    constraints: Mapping[str, str] = field(default_factory=dict)
    model_family: str | None = None


def create(untrusted_request: Request, *, policy: Policy, rng: random.Random) -> tuple[Task, Outcome]:
    """Freeze a task and draw its held-out shapes; raise UsageError for anything that isn't in the catalogue."""
    operation = find_operation(untrusted_request.op)
    language = find_language(untrusted_request.language)
    target = find_target(untrusted_request.gpu)
    if target.platform not in (*language.times_on, *language.stands_in_on):
        raise UsageError(
            f"{language.name} kernels don't run on {target.gpu!r}: expected one of {', '.join(language.times_on)}"
        )
    dtype = parse_dtype(untrusted_request.dtype)
    shape = parse_shape(untrusted_request.shape, operation.axes)
    minimum = untrusted_request.minimum_speedup
    if minimum is not None and not policy.minimum_speedup <= minimum <= 1000:
        raise UsageError(f"minimum speedup {minimum!r}: expected {policy.minimum_speedup} (the policy's) to 1000")
    held_out = _held_out(shape, operation.row_axis, operation.reduced_axis, rng)
    task = Task(
        op=operation.name,
        language=language.name,
        target=target,
        dtype=dtype,
        shape=shape,
        objective=untrusted_request.objective,
        constraints=dict(untrusted_request.constraints),
        model_family=untrusted_request.model_family,
        minimum_speedup=minimum or policy.minimum_speedup,
        baseline=untrusted_request.baseline,
        baselines=policy.baselines,
        scalars=dict(operation.scalars),
        reference_sha256=sha256(reference_source(operation).encode()),
        inputs_sha256=sha256(_input_generator_source().encode()),
        tolerance_sha256=tolerance_digest(operation, policy),
        held_out_sha256=digest_of(held_out),
        policy_sha256=digest_of(policy),
    )
    created = TaskCreated(task_id=task.task_id, task=task)
    return task, Outcome(events=(created,), files={"task.json": canonical(task)}, blobs=(canonical(held_out),))


def _held_out(shape: Mapping[str, int], rows: str, reduced: str, rng: random.Random) -> HeldOut:
    """Shapes near the public one that no author is shown: odd widths, other row counts, at most as many elements."""
    budget = max(2**14, min(2**22, shape[rows] * shape[reduced]))
    shapes = []
    for _ in range(HELD_OUT_SHAPES):
        width = rng.randint(1, max(2, 2 * shape[reduced])) | 1
        shapes.append({**shape, reduced: width, rows: rng.randint(1, max(1, min(64, budget // width)))})
    return HeldOut(salt=rng.randbytes(32).hex(), shapes=tuple(shapes))


def _input_generator_source() -> str:
    from forge.lab import inputs

    return inspect.getsource(inputs)
