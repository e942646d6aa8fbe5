"""Lessons from experiments: proposed with evidence, accepted by a person, kept in a playbook.

A lesson makes one statement about one operation. It rests on experiments that all ended in the same way. It is
refused if one of them, or another experiment with the same change, ended in a contradicting way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forge.domain.axes import Ended
from forge.domain.digest import digest_of, sha256
from forge.domain.one_line import one_line
from forge.domain.task import Task
from forge.errors import LessonRefused, UsageError
from forge.events import ExperimentClosed, LessonAccepted, LessonProposed
from forge.pipeline.skills import Skill

TEXT_LIMIT = 400
"""Largest length of a lesson in characters: a few short sentences, so that many fit into a brief."""
OPPOSITE: dict[Ended, frozenset[Ended]] = {
    "improved": frozenset({"no_change", "regressed"}),
    "no_change": frozenset({"improved", "regressed"}),
    "regressed": frozenset({"improved", "no_change"}),
    "incorrect": frozenset(),
    "build_failed": frozenset(),
}
"""Ends that contradict a lesson's end. An incorrect or unbuilt attempt doesn't contradict another's idea."""
AMENDED = "amended"
"""Provider of a playbook that has lessons added."""
HEADING = "## Amendments"
LEAD = "Learned from experiments in this workspace; the numbers are the events that closed them."
"""First line of a playbook's section of accepted lessons."""


@dataclass(frozen=True)
class Experiment:
    """A closed experiment and its task."""

    seq: int
    event: ExperimentClosed
    task: Task


def propose(
    untrusted_text: str,
    *,
    op: str,
    playbook: Skill,
    evidence: Sequence[Experiment],
    known: Sequence[Experiment],
    ended: Ended | None,
) -> LessonProposed:
    """Return a lesson from `evidence`; raise UsageError for bad text, LessonRefused if the evidence is missing."""
    text = parse_text(untrusted_text)
    if not evidence:
        raise LessonRefused("no evidence: expected at least one closed experiment", hint="forge audit experiments")
    for one in evidence:
        if one.task.op != op:
            raise LessonRefused(
                f"experiment {one.seq} is about {one.task.op!r}: expected evidence about {op!r}",
                hint=f"forge notes {op}",
            )
    said = ended or evidence[0].event.conclusion.ended
    require_unanimous(said, evidence, known, hint=f"forge notes {op}")
    seqs = tuple(sorted({one.seq for one in evidence}))
    name = digest_of({"op": op, "playbook": playbook.id, "ended": said, "text": text, "experiments": list(seqs)})[:8]
    return LessonProposed(
        lesson_id=f"{op}-{name}", op=op, playbook=playbook.id, ended=said, text=text, experiment_seqs=seqs
    )


def parse_text(untrusted_text: str) -> str:
    """Return the text if it is one printable line of allowed length; otherwise raise UsageError."""
    text = " ".join(untrusted_text.split())
    if not (1 <= len(text) <= TEXT_LIMIT and text.isprintable()):
        shown = untrusted_text[:TEXT_LIMIT]
        raise UsageError(f"bad lesson {shown!r}: expected 1 to {TEXT_LIMIT} printable characters")
    return text


def require_unanimous(said: Ended, evidence: Sequence[Experiment], known: Sequence[Experiment], *, hint: str) -> None:
    """Raise LessonRefused if an experiment in `evidence`, or another with the same change, contradicts the lesson."""
    for one in evidence:
        found = one.event.conclusion.ended
        if found != said:
            raise LessonRefused(
                f"experiment {one.seq} ended {found!r}, the lesson says {said!r}: expected evidence that agrees",
                hint=hint,
            )
    changes = {_change(one) for one in evidence if one.event.axis is not None}
    against = [one.seq for one in known if _change(one) in changes and one.event.conclusion.ended in OPPOSITE[said]]
    if against:
        listed = ", ".join(map(str, against[:8]))
        raise LessonRefused(
            f"the same change ended otherwise in experiment {listed}: expected nothing against {said!r}", hint=hint
        )


def _change(one: Experiment) -> tuple[str, ...]:
    """Return the task and the change; experiments that agree in these may be compared."""
    task = one.task
    return (task.op, task.target.gpu, task.dtype, task.language, one.event.axis or "")


def accept(proposed: LessonProposed, *, by: str, before: Skill, after: Skill) -> LessonAccepted:
    """Return the event by which a playbook accepts the lesson."""
    return LessonAccepted(
        lesson_id=proposed.lesson_id,
        by=by,
        playbook=proposed.playbook,
        before_sha256=before.sha256,
        after_sha256=after.sha256,
    )


def amend(skill: Skill, lessons: Sequence[LessonProposed]) -> Skill:
    """Return a playbook with lessons added: a version of its own, with the digest of its stored bytes."""
    if not lessons:
        return skill
    text = f"{skill.text.rstrip()}\n\n{HEADING}\n\n{LEAD}\n\n" + "".join(map(_line, lessons))
    return Skill(front=skill.front, text=text, sha256=sha256(content_of(skill, text)), provider=AMENDED)


def content_of(skill: Skill, text: str) -> bytes:
    """Return the bytes stored for an amended playbook: the version that it was made from, and its text."""
    return f"<!-- {skill.id} {skill.front.version}, amended -->\n{text}".encode()


def _line(lesson: LessonProposed) -> str:
    seqs = ", ".join(map(str, lesson.experiment_seqs))
    said = lesson.ended.replace("_", " ")
    count = len(lesson.experiment_seqs)
    return f"- `{lesson.op}`, {said} (n = {count}; {seqs}): {one_line(lesson.text, limit=TEXT_LIMIT)}\n"


def amended(skills: Sequence[Skill], accepted: Mapping[str, Sequence[LessonProposed]]) -> tuple[Skill, ...]:
    """Return the library with every accepted lesson added; `accepted` maps a playbook to its lessons, in order."""
    return tuple(amend(one, accepted.get(one.id, ())) for one in skills)
