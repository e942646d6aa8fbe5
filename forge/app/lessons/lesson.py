"""Manages this workspace's lessons: proposed from closed experiments, accepted by a person, read with the skills."""

from dataclasses import dataclass

from forge.app.lessons.lesson_list import described_of
from forge.app.stored.as_document import plain
from forge.app.workspace import Workspace
from forge.domain.axes import ENDS, Ended
from forge.domain.task import Task
from forge.errors import AlreadyDecided, LessonRefused, UnknownName, UsageError
from forge.events import ExperimentClosed, LessonAccepted, LessonProposed, Recorded, TaskCreated
from forge.operations import find_operation
from forge.pipeline import lesson
from forge.pipeline.lesson import Experiment
from forge.pipeline.skill_package import every_skill
from forge.pipeline.skills import Skill, find_skill

NAME_LIMIT = 200
"""Longest name of the person who accepts, in characters. Chosen; a name is shown in one line."""
Data = dict[str, object]


@dataclass(frozen=True)
class Lesson:
    """A lesson, and its acceptance if there is one."""

    proposed: Recorded[LessonProposed]
    accepted: Recorded[LessonAccepted] | None


def propose(
    workspace: Workspace, *, op: str, runs: tuple[str, ...], text: str, playbook: str | None, ended: str | None
) -> Lesson:
    """Propose a lesson from the experiments of `runs`; raise LessonRefused if they don't support it."""
    known = _closed(workspace)
    evidence = [_of_run(known, workspace.find_run(name).run_id) for name in runs]
    event = lesson.propose(
        text,
        op=find_operation(op).name,
        playbook=find_skill(_library(workspace), playbook or _playbook(evidence)),
        evidence=evidence,
        known=known,
        ended=None if ended is None else _parse_end(ended),
    )
    workspace.append((event,), run_id=f"lesson:{event.lesson_id}", key=f"lesson:{event.lesson_id}")
    return find_lesson(workspace, event.lesson_id)


def accept(workspace: Workspace, name: str, *, by: str) -> Lesson:
    """Accept a lesson into its playbook; raise LessonRefused if later experiments contradict it.

    Raises UsageError for a bad name, and AlreadyDecided if another person accepted it.
    """
    if not (1 <= len(by) <= NAME_LIMIT and by.isprintable() and by.strip()):
        raise UsageError(f"bad name {by[:NAME_LIMIT]!r}: expected 1 to {NAME_LIMIT} printable characters")
    found = find_lesson(workspace, name)
    proposed = found.proposed.event
    if found.accepted is not None:
        if (found.accepted.event.by, found.accepted.actor) == (by, workspace.actor):
            return found
        who = f"{found.accepted.event.by!r} (event {found.accepted.seq})"
        raise AlreadyDecided(
            f"lesson {proposed.lesson_id!r} was accepted by {who}: nothing was recorded",
            hint=f"forge lesson show {proposed.lesson_id}",
        )
    known = _closed(workspace)
    by_seq = {one.seq: one for one in known}
    evidence = [by_seq[seq] for seq in proposed.experiment_seqs]
    lesson.require_unanimous(proposed.ended, evidence, known, hint=f"forge notes {proposed.op}")
    standing = accepted_lessons(workspace).get(proposed.playbook, ())
    skill = find_skill(every_skill(workspace.home), proposed.playbook)
    before, after = lesson.amend(skill, standing), lesson.amend(skill, (*standing, proposed))
    event = lesson.accept(proposed, by=by, before=before, after=after)
    workspace.blobs.put(lesson.content_of(after, after.text))
    workspace.ledger.append(
        (event,),
        actor=workspace.actor,
        correlation_id=f"lesson:{proposed.lesson_id}",
        causation_id=found.proposed.event_id,
        idempotency_key=f"lesson-accept:{proposed.lesson_id}",
        expected={event.stream(): found.proposed.stream_version},
    )
    return find_lesson(workspace, proposed.lesson_id)


def lessons(workspace: Workspace) -> list[Lesson]:
    """Return every lesson, in the order of their proposals."""
    proposed: dict[str, Recorded[LessonProposed]] = {}
    accepted: dict[str, Recorded[LessonAccepted]] = {}
    for recorded in workspace.ledger.read(types=("LessonProposed", "LessonAccepted")):
        if isinstance(recorded.event, LessonProposed):
            proposed[recorded.event.lesson_id] = recorded  # type: ignore[assignment]  # matched by its event
        elif isinstance(recorded.event, LessonAccepted):
            accepted[recorded.event.lesson_id] = recorded  # type: ignore[assignment]  # matched by its event
    return [Lesson(one, accepted.get(lesson_id)) for lesson_id, one in proposed.items()]


def accepted_lessons(workspace: Workspace) -> dict[str, tuple[LessonProposed, ...]]:
    """Return playbook -> its lessons, in the order of their acceptance."""
    taken = [(one.accepted.seq, one.proposed.event) for one in lessons(workspace) if one.accepted is not None]
    found: dict[str, tuple[LessonProposed, ...]] = {}
    for _, event in sorted(taken, key=lambda one: one[0]):
        found[event.playbook] = (*found.get(event.playbook, ()), event)
    return found


def find_lesson(workspace: Workspace, name: str) -> Lesson:
    """Return the lesson with this id; raise UnknownName."""
    known = {one.proposed.event.lesson_id: one for one in lessons(workspace)}
    if name not in known:
        raise UnknownName("lesson", name, list(known), listed_by="forge lesson list")
    return known[name]


def described(one: Lesson) -> Data:
    """Return a lesson as data for a table or for JSON."""
    return described_of(plain(one.proposed), None if one.accepted is None else plain(one.accepted))


def _library(workspace: Workspace) -> tuple[Skill, ...]:
    return lesson.amended(every_skill(workspace.home), accepted_lessons(workspace))


def _closed(workspace: Workspace) -> list[Experiment]:
    """Return every closed experiment with its task, in order."""
    tasks: dict[str, Task] = {}
    found: list[Experiment] = []
    for recorded in workspace.ledger.read(types=("TaskCreated", "ExperimentClosed")):
        event = recorded.event
        if isinstance(event, TaskCreated):
            tasks[event.task_id] = event.task
        elif isinstance(event, ExperimentClosed) and event.task_id in tasks:
            found.append(Experiment(recorded.seq, event, tasks[event.task_id]))
    return found


def _of_run(known: list[Experiment], run_id: str) -> Experiment:
    for one in reversed(known):
        if one.event.run_id == run_id:
            return one
    raise LessonRefused(
        f"the experiment of run {run_id!r} isn't closed by an event of its own: expected one that was refused or "
        "timed since experiments are recorded",
        hint=f"forge run show {run_id}",
    )


def _playbook(evidence: list[Experiment]) -> str:
    """Return the playbook of the language of all evidence; raise UsageError if there are several languages."""
    languages = sorted({one.task.language for one in evidence})
    if len(languages) != 1:
        raise UsageError(
            f"the evidence is in {' and '.join(languages) or 'no language'}: expected runs of one language, or the "
            "playbook that the lesson is for as --playbook",
            hint="forge skill list",
        )
    return f"playbook.{languages[0]}"


def _parse_end(untrusted_end: str) -> Ended:
    known: dict[str, Ended] = {name: name for name in ENDS}
    if untrusted_end not in known:
        raise UnknownName("end of an experiment", untrusted_end, list(known))
    return known[untrusted_end]
