"""Checks a kernel against a reference file, or against an operation of the catalogue, without a workspace.

Nothing is recorded, and nothing is written outside a temporary folder: what a check accepts is no evidence.
"""

import ast
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forge import __version__
from forge.app.check.guessed_kernel import guessed_entry, guessed_language
from forge.app.machine.chosen_device import chosen_device
from forge.app.tasks.references import parse_function, read_source, with_room_of
from forge.domain.candidate import BUILDS, Metadata
from forge.domain.device import Device
from forge.domain.digest import canonical
from forge.domain.evidence import Isolation
from forge.domain.kernel_domain import KernelDomain
from forge.domain.parsed_source import defines, parse_source
from forge.domain.policy import Policy
from forge.domain.target import Target
from forge.domain.tensors import DType, Shape, parse_dtype, parse_shape
from forge.domain.verdict import Accepted
from forge.errors import EnvironmentUnfit
from forge.executor.local import LocalExecutor
from forge.lab.job import Job, Progress
from forge.lab.log_excerpt import LogExcerpt, excerpt
from forge.lab.packages import require_lab
from forge.lab.reference.describe import SubmittedReference
from forge.lab.reference.infer import infer
from forge.lab.reference.reference_guest import HERE, AnsweringDevice
from forge.lab.sources.mending import LineToMend, place_to_mend
from forge.lab.verification import Examination
from forge.languages import Language, find_language
from forge.operations import find_operation
from forge.operations.operation import Operation
from forge.operations.own import make_known
from forge.pipeline.constants import with_constants
from forge.pipeline.create import TaskRequest, draw_held_out, parse_terms, require_room
from forge.pipeline.domain import stated_domain
from forge.pipeline.operands import parse_axes, parse_operands, parse_ranges, require_arguments
from forge.pipeline.submit import MODEL_ENTRY
from forge.pipeline.verify import refused_without_running
from forge.pipeline.weak_reference import require_strong
from forge.platforms import PROCESSORS
from forge.platforms.capture import capture_environment
from forge.sandbox.isolation_here import isolation

STANDS_FOR_A_GPU = "h200"
"""Target of a kernel for GPUs if no GPU is here and none is named: the one for which most kernels are recorded."""


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """A kernel, what to check it against, and the terms; None means that the files or this machine decide."""

    kernel: Path
    reference: Path | None = None
    op: str | None = None
    shape: str | None = None
    function: str = ""
    operands: Sequence[str] = ()
    constants: Sequence[str] = ()
    axes: Sequence[str] = ()
    ranges: Sequence[str] = ()
    language: str | None = None
    gpu: str | None = None
    dtype: str = "fp32"
    entry_point: str | None = None
    domain: str | None = None
    """Shapes at which the kernel promises an answer, as text; None: all that the operation demands."""
    limit_s: float | None = None
    """Processor time that one thread of a guest may take, in seconds; None: as long as in a verification."""


@dataclass(frozen=True, kw_only=True)
class CheckedFiles:
    """The answer of a check: the task that was assumed, and what the gates found. Nothing of it is recorded."""

    operation: str
    entry_point: str
    language: str
    target: Target
    dtype: str
    shape: Shape
    domain: str | None
    """Shapes at which the kernel promises an answer, as text."""
    simulated: bool
    isolation: Isolation
    examined: Examination
    log: LogExcerpt | None
    mend: LineToMend | None
    """Line of the kernel to look at first, if it was refused and its log names no line."""


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """The parsed request: what the kernel is judged as, by what, and where."""

    kernel: bytes
    tree: ast.Module
    language: Language
    target: Target
    operation: Operation
    shape: Shape
    held_out: tuple[Shape, ...]
    entry: str
    domain: KernelDomain | None
    gpu: Device | None
    """Target's GPU; None if this machine doesn't have it."""


def check(request: CheckRequest, *, progress: Progress) -> CheckedFiles:
    """Judge a kernel by the gates; raise UsageError, ReferenceRefused, WeakTask or EnvironmentUnfit."""
    require_lab()
    wall = isolation()
    question = _question(request, wall, progress)
    job = _job(question, wall, dtype=parse_dtype(request.dtype), policy=_policy(request))
    with tempfile.TemporaryDirectory(prefix="forge-check-") as folder:
        examined = _examined(job, question, LocalExecutor(Path(folder) / "measuring.lock"), progress)
    log = excerpt(examined.log, files=job.files, withheld=False)  # its shapes are drawn anew for each check
    reason = None if isinstance(examined.verdict, Accepted) else examined.verdict.reason
    mend = None
    if reason is not None and (log is None or log.line is None):
        compared = examined.counterexample
        named = {"entry": question.entry, "language": question.language.name, "code": reason.code}
        mend = place_to_mend(
            question.kernel,
            **named,
            untrusted_error=log.untrusted_error if log else None,
            wrong_output=None if compared is None else compared.output,
            wrong_from=None if compared is None else compared.wrong_from,
            findings=[(one.kind, one.file, one.line) for one in examined.findings],
        )
    return CheckedFiles(
        operation=question.operation.name,
        entry_point=question.entry,
        language=question.language.name,
        target=question.target,
        dtype=request.dtype,
        shape=question.shape,
        domain=question.domain.text if question.domain else None,
        simulated=job.interpreted,
        isolation=wall,
        examined=examined,
        log=log,
        mend=mend,
    )


def _question(request: CheckRequest, wall: Isolation, progress: Progress) -> _Comparison:
    kernel = read_source(request.kernel, what="kernel")
    tree = _parsed(kernel)
    language = find_language(request.language or guessed_language(tree, kernel))
    device = chosen_device()
    here = capture_environment(forge_version=__version__, forge_commit=None, device=device).gpu
    gpu = request.gpu or _usual_target(language, here.slug if here else None)
    terms = TaskRequest(op=request.op or "", language=language.name, gpu=gpu, dtype=request.dtype, shape="")
    target = parse_terms(terms, Policy()).target
    on_target = device if target.platform == "cuda" and here is not None and here.slug == target.gpu else None
    place = HERE if on_target is None else AnsweringDevice("cuda", on_target)
    operation, shape, held_out = _asked(request, target, wall, place, progress)
    own = operation.own
    names = [MODEL_ENTRY, operation.name, *([own.contract.entry] if own else [])]
    return _Comparison(
        kernel=kernel,
        tree=tree,
        language=language,
        target=target,
        operation=operation,
        shape=shape,
        held_out=held_out,
        entry=request.entry_point or guessed_entry(tree, names),
        domain=None if request.domain is None else stated_domain(request.domain, operation, shape),
        gpu=on_target,
    )


def _asked(
    request: CheckRequest, target: Target, wall: Isolation, place: AnsweringDevice, progress: Progress
) -> tuple[Operation, Shape, tuple[Shape, ...]]:
    """Return the operation, the shape, and other shapes that are asked; infer them from a reference file."""
    rng, dtype, policy = random.SystemRandom(), parse_dtype(request.dtype), Policy()
    if request.reference is None:
        operation = find_operation(request.op or "")
        shape = parse_shape(request.shape, operation.axes) if request.shape else dict(operation.workloads[0])
        require_room(operation, shape, dtype, policy, target)
        return operation, shape, draw_held_out(shape, operation.row_axis, operation.reduced_axis, rng).shapes
    question = SubmittedReference(
        source=with_constants(read_source(request.reference, what="reference"), request.constants),
        name=request.reference.name,
        dtype=dtype,
        function=parse_function(request.function),
        operands=parse_operands(request.operands),
        axes=parse_axes(request.axes),
        ranges=parse_ranges(request.ranges),
    )
    require_arguments(question.operands, question.source, function=question.function)
    inferred = infer(
        question,
        policy=with_room_of(place, target, policy),
        isolation=wall,
        rng=rng,
        progress=lambda step: progress(f"reference: {step}"),
        place=place,
    )
    require_strong(inferred)
    make_known(inferred.operation)
    return inferred.operation, inferred.contract.shape, inferred.held_out


def _policy(request: CheckRequest) -> Policy:
    """Return the thresholds of a check: the defaults, with the limit that the user asked for."""
    return Policy() if request.limit_s is None else Policy(verify_limit_s=request.limit_s)


def _job(question: _Comparison, wall: Isolation, *, dtype: DType, policy: Policy) -> Job:
    language, op, entry = question.language, question.operation.name, question.entry
    metadata = Metadata(name="checked", op=op, language=language.name, entry_point=entry, domain=question.domain)
    build = BUILDS.get(language.name)
    if build is not None and defines(question.tree, build().source):
        metadata = metadata.with_build()
    return Job(
        operation=question.operation,
        language=language,
        shape=question.shape,
        held_out=question.held_out,
        dtype=dtype,
        policy=policy,
        isolation=wall,
        files={"kernel.py": question.kernel, "metadata.json": canonical(metadata)},
        metadata=metadata,
        entry_point=entry,
        interpreted=question.target.platform == "cuda" and question.gpu is None and "cpu" in language.stands_in_on,
        device="cpu" if question.gpu is None else "cuda",
        gpu=question.gpu,
        arch=PROCESSORS[question.target.gpu].arch,
    )


def _examined(job: Job, question: _Comparison, executor: LocalExecutor, progress: Progress) -> Examination:
    """Examine the kernel; if nothing here can run it, screen and build it, and return only a refusal."""
    if job.gpu is not None or job.interpreted or question.target.platform == "cpu":
        return executor.examine(job, progress=progress)
    unfit = f"{job.language.name} kernels for {question.target.gpu!r} can't be run on this machine"
    return refused_without_running(job, executor, EnvironmentUnfit(unfit, hint="forge doctor"), progress)


def _usual_target(language: Language, here: str | None) -> str:
    if here is not None and "cuda" in language.times_on:
        return here
    return "cpu" if "cpu" in language.times_on else STANDS_FOR_A_GPU


def _parsed(kernel: bytes) -> ast.Module:
    """Return the kernel's syntax tree, an empty one if it doesn't parse.

    The first gate then reports the syntax error.
    """
    try:
        return parse_source(kernel)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])
