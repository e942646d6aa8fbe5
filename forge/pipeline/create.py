"""Freezes a task."""

import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from forge.domain.contender import OwnContender
from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.domain_shapes import nearest_inside
from forge.domain.domain_text import parse_domain
from forge.domain.evidence import Admission
from forge.domain.kernel_domain import KernelDomain
from forge.domain.policy import Policy
from forge.domain.target import Target
from forge.domain.task import BaselineChoice, HeldOut, Objective, Task
from forge.domain.tensors import DType, Shape, parse_dtype
from forge.errors import UsageError
from forge.events import TaskCreated
from forge.lab.inputs.random_sizes import near_shape
from forge.lab.reference.room import SETS_PER_GUEST, expected_room, most_set_bytes
from forge.lab.runner import PROCESSOR
from forge.languages import Language, find_language
from forge.operations import baselines_of, find_operation, reference_source, tolerance_digest
from forge.operations.operation import Operation
from forge.pipeline.contender_files import SubmittedContender, parse_contenders
from forge.pipeline.domain import resolved_for, shape_fault
from forge.pipeline.outcome import Outcome
from forge.pipeline.task_shapes import parse_shapes
from forge.pipeline.weak_task import require_strength, why_weak
from forge.platforms import PLATFORMS, PROCESSORS, find_target

HELD_OUT_SHAPES = 8
"""Number of shapes that a task keeps secret. Chosen; each is a whole examination, so more would take longer."""
MOST_DRAWS = 10_000
"""Largest number of draws of held-out shapes. Chosen; without a narrow domain a few dozen are enough, and 10,000 take
less than a second."""
USUAL_ROOM_BYTES = PROCESSOR.least_arena_bytes // 5
"""Size of a call's operands in bytes for which every guest has room: four sets with red zones fit in its arena."""
NOTES_LIMIT = 16
"""Largest number of constraints of a task. Chosen; each is a line of the brief."""
NOTE_LIMIT = 200
"""Largest length of a constraint's key and value together, and of a model family's name, in characters. Chosen; a
note is shown in one line."""


Admit = Callable[[Operation, Mapping[str, int], DType, Policy], Admission]
"""Function that tries a task on known wrong and right answers; forge/lab/admission/mutants.py has it."""


@dataclass(frozen=True, kw_only=True)
class TaskRequest:
    """A request for a task, as untrusted text."""

    op: str
    language: str
    gpu: str
    dtype: str
    shape: str
    further_shapes: tuple[str, ...] = ()
    """Texts of more shapes; a text may have ranges, as `shape` may."""
    objective: Objective = "latency"
    minimum_speedup: float | None = None
    baseline: BaselineChoice = "best"
    constraints: Mapping[str, str] = field(default_factory=dict)
    model_family: str | None = None
    contenders: tuple[SubmittedContender, ...] = ()
    """Files to measure candidates against."""
    domain: str | None = None
    """Least domain of a candidate, as `parse_domain` reads it."""


@dataclass(frozen=True, kw_only=True)
class RequestedTerms:
    """The parsed terms of a request, all but the operation and its shape."""

    language: Language
    target: Target
    dtype: DType
    objective: Objective
    minimum_speedup: float
    baseline: BaselineChoice
    constraints: dict[str, str]
    model_family: str | None
    contenders: tuple[OwnContender, ...]
    contender_sources: tuple[bytes, ...]
    """Content of the contenders' files, to be stored."""
    untrusted_domain: str | None = None
    """Text of the least domain. It is parsed once the operation's axes are known."""

    def fields(self) -> dict[str, object]:
        """Return the request as a task's fields."""
        left_out = ("contender_sources", "untrusted_domain")
        named = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**named, "language": self.language.name}


def parse_terms(untrusted_request: TaskRequest, policy: Policy) -> RequestedTerms:
    """Parse the terms of a request; raise UsageError for unknown names and values that aren't allowed."""
    language = find_language(untrusted_request.language)
    target = find_target(untrusted_request.gpu)
    _require_platform(language, target)
    return RequestedTerms(
        language=language,
        target=target,
        dtype=parse_dtype(untrusted_request.dtype),
        objective=untrusted_request.objective,
        minimum_speedup=_parse_minimum(untrusted_request.minimum_speedup, policy),
        baseline=_parse_baseline(untrusted_request.baseline, policy),
        constraints=_parse_constraints(untrusted_request.constraints),
        model_family=_parse_model_family(untrusted_request.model_family),
        contenders=parse_contenders(untrusted_request.contenders),
        contender_sources=tuple(one.source for one in untrusted_request.contenders),
        untrusted_domain=untrusted_request.domain,
    )


def create(
    untrusted_request: TaskRequest, *, policy: Policy, rng: random.Random, admit: Admit | None = None
) -> tuple[Task, Outcome]:
    """Freeze a task and draw its held-out shapes; raise UsageError for anything that isn't in the catalogue.

    With `admit` the task is tried on known answers first; raise WeakTask if it can't tell wrong from right.
    """
    operation = find_operation(untrusted_request.op)
    terms = parse_terms(untrusted_request, policy)
    shape, *further = parse_shapes((untrusted_request.shape, *untrusted_request.further_shapes), operation.axes)
    for one in (shape, *further):
        require_room(operation, one, terms.dtype, policy, terms.target)
    admission = admit(operation, shape, terms.dtype, policy) if admit is not None else None
    if admission is not None:
        require_strength(admission, hint=f"forge op show {operation.name}", why=why_weak(shape, terms.dtype))
    domain = parse_least_domain(terms.untrusted_domain, operation, shape, *further)
    held_out = draw_held_out(shape, operation.row_axis, operation.reduced_axis, rng, domain, beside=further)
    task = Task.model_validate(
        {
            **terms.fields(),
            "op": operation.name,
            "shape": shape,
            "further_shapes": further,
            "baselines": baselines_of(operation, policy),
            "scalars": dict(operation.scalars),
            "reference_sha256": sha256(reference_source(operation).encode()),
            "inputs_sha256": sha256(_input_generator_source().encode()),
            "tolerance_sha256": tolerance_digest(operation, policy),
            "held_out_sha256": digest_of(held_out),
            "policy_sha256": digest_of(policy),
            "domain": domain,
        }
    )
    created = TaskCreated(task_id=task.task_id, task=task, admission=admission)
    return task, Outcome(events=(created,), blobs=(canonical(held_out), *terms.contender_sources))


def _require_platform(language: Language, target: Target) -> None:
    if target.platform not in PLATFORMS:
        raise UsageError(
            f"Forge runs nothing on {target.gpu!r} ({target.platform}): expected a processor of one of the platforms "
            f"{', '.join(PLATFORMS)}"
        )
    if target.platform not in (*language.times_on, *language.stands_in_on):
        raise UsageError(
            f"{language.name} kernels don't run on {target.gpu!r}: expected one of the platforms "
            f"{', '.join(language.times_on)}; or choose another language"
        )


def _parse_minimum(untrusted: float | None, policy: Policy) -> float:
    if untrusted is not None and not policy.minimum_speedup <= untrusted <= 1000:
        raise UsageError(f"minimum speedup {untrusted!r}: expected {policy.minimum_speedup} (the policy's) to 1000")
    return untrusted or policy.minimum_speedup


def _parse_baseline(untrusted: BaselineChoice, policy: Policy) -> BaselineChoice:
    if untrusted != "best" and untrusted not in policy.baselines:
        raise UsageError(
            f"baseline {untrusted!r}: expected best, or one that the policy has measured: "
            f"{', '.join(policy.baselines)}; policy.toml may name more"
        )
    return untrusted


def require_room(operation: Operation, shape: Shape, dtype: DType, policy: Policy, target: Target) -> None:
    """Raise UsageError if there is no room for the operands of a shape.

    The room is an eighth of the policy's memory limit. On a GPU it is an eighth of the device's memory if that is
    more. The limit counts operands in fp64, as the oracle has them.
    """
    needed = operation.oracle_bytes(shape)
    if needed <= max(most_set_bytes(policy), device_room_bytes(target)):
        return
    if operation.operand_bytes(shape, dtype) > USUAL_ROOM_BYTES:
        raise UsageError(
            f"shape {shape} needs {needed} bytes of operands in fp64: {_expected(policy, target)}; or a smaller shape"
        )


def device_room_bytes(target: Target) -> int:
    """Return how many bytes the operands of one call may take in fp64 on the target GPU; 0 without one."""
    memory_gb = PROCESSORS[target.gpu].memory_gb if target.platform != "cpu" else None
    return 0 if memory_gb is None else int(memory_gb * 1e9) // SETS_PER_GUEST


def _expected(policy: Policy, target: Target) -> str:
    room = device_room_bytes(target)
    if room <= most_set_bytes(policy):
        return expected_room(policy)
    name = PROCESSORS[target.gpu].name
    return f"expected at most {room} bytes, an eighth of the memory of {name}; choose a GPU with more memory"


def _parse_constraints(untrusted_notes: Mapping[str, str]) -> dict[str, str]:
    if len(untrusted_notes) > NOTES_LIMIT:
        raise UsageError(f"{len(untrusted_notes)} constraints: expected at most {NOTES_LIMIT}")
    for key, value in untrusted_notes.items():
        named = key.isascii() and key.isidentifier()
        if not (named and value.isprintable() and len(value) >= 1 and len(key) + len(value) <= NOTE_LIMIT):
            raise UsageError(
                f"bad constraint {key[:NOTE_LIMIT]!r} = {value[:NOTE_LIMIT]!r}: expected an ASCII name and one line "
                f"of text, {NOTE_LIMIT} characters together"
            )
    return dict(untrusted_notes)


def _parse_model_family(untrusted_name: str | None) -> str | None:
    if untrusted_name is not None and not (1 <= len(untrusted_name) <= NOTE_LIMIT and untrusted_name.isprintable()):
        raise UsageError(
            f"bad model family {untrusted_name[:NOTE_LIMIT]!r}: expected 1 to {NOTE_LIMIT} printable characters"
        )
    return untrusted_name


def parse_least_domain(untrusted_text: str | None, operation: Operation, *shapes: Shape) -> KernelDomain | None:
    """Return the domain that a task demands of its candidates; raise UsageError if it can't hold the shapes."""
    if untrusted_text is None:
        return None
    domain = parse_domain(untrusted_text, operation.axes)
    faults = (shape_fault(domain, operation, shape) for shape in shapes)
    fault = next((one for one in faults if one is not None), None)
    if fault is not None:
        raise UsageError(f"bad domain {untrusted_text!r}: {fault}", hint=f"forge op show {operation.name}")
    return resolved_for(operation, domain)


def draw_held_out(
    shape: Shape,
    rows: str,
    reduced: str,
    rng: random.Random,
    domain: KernelDomain | None = None,
    *,
    beside: Sequence[Shape] = (),
) -> HeldOut:
    """Draw distinct shapes near the public one that no author is shown: odd widths, other row counts.

    With a least domain they lie in it, and there may be fewer, if it holds only a few shapes.

    Neither the public shape nor those `beside` it are among them. None has more elements than the public one, or than
    2^14 if it is smaller. Shapes are also limited to 2^22 elements, because eight larger ones take too long.
    """
    shapes: list[Shape] = []
    for _ in range(MOST_DRAWS):
        drawn = near_shape(shape, rows, reduced, rng)
        if domain is not None:
            drawn = nearest_inside(domain, drawn, shape)
        if drawn not in (shape, *beside, *shapes):
            shapes.append(drawn)
        if len(shapes) == HELD_OUT_SHAPES:
            break
    return HeldOut(salt=rng.randbytes(32).hex(), shapes=tuple(shapes))


def _input_generator_source() -> str:
    from forge.lab.inputs import draw

    return inspect.getsource(draw)
