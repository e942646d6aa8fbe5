"""Makes tasks from the user's own reference files: read, inferred in a sandbox, shown, frozen."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from forge.app.machine.chosen_executor import executor_of
from forge.app.tasks.create import Opened, open_first_run
from forge.app.user.user_paths import read_named
from forge.app.workspace import Workspace
from forge.domain.candidate import FILE_LIMIT_BYTES
from forge.domain.own_operation import PREFIX, is_own
from forge.domain.policy import Policy
from forge.domain.target import Target
from forge.domain.task import Task
from forge.errors import UsageError, WeakTask
from forge.executor import Site
from forge.lab.job import Progress
from forge.lab.packages import require_lab
from forge.lab.reference.describe import SubmittedReference
from forge.lab.reference.infer import Inferred, infer
from forge.lab.reference.reference_guest import HERE, AnsweringDevice
from forge.lab.reference.room import SETS_PER_GUEST, with_room
from forge.operations.own import SLUG_LIMIT, make_known
from forge.pipeline.constants import with_constants
from forge.pipeline.create import RequestedTerms, TaskRequest, device_room_bytes, parse_terms
from forge.pipeline.operands import parse_axes, parse_operands, parse_ranges, require_arguments
from forge.pipeline.reference import create_own
from forge.pipeline.task_shapes import parse_own_shapes
from forge.sandbox.isolation_here import isolation


@dataclass(frozen=True)
class Confirmable:
    """The result of inferring a reference file, on parsed terms; nothing is recorded yet."""

    inferred: Inferred
    terms: RequestedTerms


@dataclass(frozen=True)
class ImportedProblem:
    """The result of importing one problem file."""

    problem: str
    task_id: str | None = None
    op: str | None = None
    refusal: str | None = None
    """Reason why there is no task."""


@dataclass(frozen=True)
class DeclaredTexts:
    """Facts about a reference that the user declares, as untrusted texts."""

    operands: Sequence[str] = ()
    axes: Sequence[str] = ()
    ranges: Sequence[str] = ()
    constants: Sequence[str] = ()
    """Numbers in place of the file's own, such as `batch_size=16`."""
    name: str | None = None
    """Name of the operation; None: the function's, or the file's for a class Model."""


_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{SLUG_LIMIT - 1}}}")
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""File with the limit of this process's container in bytes, or the word `max` (the Linux kernel's cgroup-v2.rst)."""
NOTHING_DECLARED = DeclaredTexts()
"""Declaration of nothing: everything is inferred."""


def infer_reference(
    workspace: Workspace,
    path: Path,
    request: TaskRequest,
    *,
    function: str = "",
    declared: DeclaredTexts = NOTHING_DECLARED,
    progress: Progress,
) -> Confirmable:
    """Infer the operation of a reference file; raise UsageError, ReferenceRefused, or EnvironmentUnfit."""
    require_lab()
    terms = parse_terms(request, workspace.policy)
    question = SubmittedReference(
        source=with_constants(read_source(path), declared.constants),
        name=path.name,
        dtype=terms.dtype,
        function=parse_function(function),
        operands=parse_operands(declared.operands),
        axes=parse_axes(declared.axes),
        ranges=parse_ranges(declared.ranges),
        further=parse_own_shapes(request.further_shapes),
        slug=parse_name(declared.name),
    )
    require_arguments(question.operands, question.source, function=question.function)
    place = place_of(terms.target, executor_of(workspace).site(workspace.policy))
    inferred = infer(
        question,
        policy=with_room_of(place, terms.target, workspace.policy),
        isolation=isolation(),
        rng=workspace.rng,
        progress=progress,
        place=place,
    )
    return Confirmable(inferred, terms)


def place_of(target: Target, site: Site) -> AnsweringDevice:
    """Return where a reference for this target answers: on the GPU if it is the target's, else on the processor."""
    here = site.environment.gpu
    on_target = here is not None and site.device is not None and here.slug == target.gpu
    return AnsweringDevice("cuda", site.device) if on_target else HERE


def with_room_of(place: AnsweringDevice, target: Target, policy: Policy) -> Policy:
    """Return the policy with room for what an eighth of the GPU's memory holds, up to half of this machine's."""
    if place == HERE:
        return policy
    return with_room(policy, min(SETS_PER_GUEST * device_room_bytes(target), memory_bytes(CGROUP_LIMIT) // 2))


def memory_bytes(limit_file: Path) -> int:
    """Return the memory of this machine, or what a container may have of it, if that is less."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = limit_file.read_text(encoding="ascii").strip()
    except OSError:
        return machine
    return min(machine, int(limit)) if limit.isdecimal() else machine


def freeze_reference(workspace: Workspace, confirmed: Confirmable) -> Opened:
    """Record the task and open its first run; raise WeakTask if it can't tell wrong answers from right ones."""
    task = _frozen(workspace, confirmed)
    return open_first_run(workspace, task, confirmed.inferred.admission)


def import_problems(
    workspace: Workspace, path: Path, request: TaskRequest, *, progress: Progress
) -> Iterator[tuple[int, ImportedProblem]]:
    """Freeze a task for each problem file at `path`; yield the number of files, and the result of each."""
    files = problem_files(path)
    parse_terms(request, workspace.policy)
    for file in files:
        progress(file.name)
        yield len(files), _imported(workspace, file, request)


def problem_files(path: Path) -> list[Path]:
    """Return a problem file, or those of a folder in the order of their numbers; raise UsageError without any."""
    if path.is_file():
        return [path]
    found = path.glob("*.py") if path.is_dir() else []
    files = [one for one in found if one.is_file() and not one.name.startswith("_")]
    if not files:
        raise UsageError(f"no problem files at {str(path)!r}: expected a .py file, or a folder of them")
    return sorted(files, key=lambda one: (int((re.match(r"\d{1,9}", one.name) or ["0"])[0]), one.name))


def _imported(workspace: Workspace, file: Path, request: TaskRequest) -> ImportedProblem:
    try:
        found = infer_reference(workspace, file, request, progress=lambda _: None)
        task = _frozen(workspace, found)
    except (UsageError, WeakTask) as error:  # the terms were parsed, so the file is wrong
        return ImportedProblem(_shown(file), refusal="; ".join(filter(None, (error.message, error.hint))))
    return ImportedProblem(_shown(file), task.task_id, task.op)


def _shown(file: Path) -> str:
    """Return a file's name as valid text, whatever bytes it has on disk."""
    return os.fsencode(file.name).decode("utf-8", "backslashreplace")


def _frozen(workspace: Workspace, confirmed: Confirmable) -> Task:
    task, outcome = create_own(confirmed.inferred, confirmed.terms, policy=workspace.policy, rng=workspace.rng)
    for blob in outcome.blobs:
        workspace.blobs.put(blob)
    workspace.keep_policy()
    make_known(confirmed.inferred.operation)
    workspace.append(outcome.events, run_id=f"task:{task.task_id}", key=f"create:{task.task_id}")
    return task


def parse_function(untrusted_name: str) -> str:
    """Return the name of a function of the reference file, or "" for the only one; raise UsageError."""
    if untrusted_name and not (untrusted_name.isascii() and untrusted_name.isidentifier()):
        raise UsageError(f"bad function {untrusted_name[:200]!r}: expected a name that the file defines")
    return untrusted_name


def parse_name(untrusted_name: str | None) -> str:
    """Return the name for an own operation, or "" for the default; raise UsageError."""
    if untrusted_name is None:
        return ""
    if not _NAME.fullmatch(untrusted_name) or is_own(untrusted_name):
        raise UsageError(
            f"bad name {untrusted_name[:200]!r}: expected up to {SLUG_LIMIT} lower-case letters, digits and _, the "
            f"first a letter, without {PREFIX!r} before it"
        )
    return untrusted_name


def read_source(path: Path, *, what: str = "reference") -> bytes:
    """Return the bytes of a file of source text, in UTF-8 without NUL; raise UsageError, which says `what` it is."""
    named = f"the {what} {str(path)!r}"
    content = read_named(path, what=named, expected="a file of source text", limit_bytes=FILE_LIMIT_BYTES)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{named} isn't UTF-8 (byte {error.start}): expected source text") from error
    if not text.strip() or "\0" in text:
        raise UsageError(f"{named} is empty or has NUL characters: expected source text")
    return content
