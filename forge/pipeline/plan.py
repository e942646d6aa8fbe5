"""Phase 2: choose the playbooks an author gets, and say why.

Three to five skills: the two hygiene skills always, then the best matches for the operation and the language.
"""

from dataclasses import dataclass
from pathlib import Path

from forge.domain.digest import canonical, sha256
from forge.domain.task import Task
from forge.events import ChosenSkill, PlanAccepted
from forge.operations import find_operation
from forge.pipeline.outcome import Outcome

HYGIENE = ("patterns.boundary-conditions", "patterns.test-plan")
MOST = 5
PROVIDER = "embedded"
_FOLDER = Path(__file__).parent.parent / "skills"
LAUNCH_BOUND_BYTES = 2**21
"""Below this much traffic a processor spends more time starting a kernel than moving its bytes."""


@dataclass(frozen=True)
class Skill:
    """One playbook: its text, and what it is about."""

    id: str
    tags: frozenset[str]
    languages: frozenset[str]
    text: str


def load_skills() -> tuple[Skill, ...]:
    """Every playbook that ships with Forge, by id."""
    return tuple(_parse(path) for path in sorted(_FOLDER.glob("*.md")))


def _parse(path: Path) -> Skill:
    """Read a playbook: a line of tags, a line of languages, then Markdown."""
    text = path.read_text(encoding="utf-8")
    tags, languages, _ = text.split("\n", 2)
    return Skill(
        id=path.stem,
        tags=frozenset(tags.removeprefix("Tags:").replace(",", " ").split()),
        languages=frozenset(languages.removeprefix("Languages:").replace(",", " ").split()),
        text=text,
    )


def plan(task: Task, *, run_id: str, earlier_experiments: int) -> tuple[tuple[Skill, ...], Outcome]:
    """Choose skills for a task."""
    queries = (task.op, *task.op.split("_"), task.language, task.dtype)
    ranked = sorted(
        (skill for skill in load_skills() if task.language in skill.languages or "any" in skill.languages),
        key=lambda skill: (-_score(skill, queries), skill.id),
    )
    hygiene = [skill for skill in ranked if skill.id in HYGIENE]
    matches = [skill for skill in ranked if skill.id not in HYGIENE and _score(skill, queries)]
    chosen = (*hygiene, *matches[: MOST - len(hygiene)])
    event = PlanAccepted(
        task_id=task.task_id,
        run_id=run_id,
        skills=tuple(
            ChosenSkill(id=skill.id, sha256=sha256(skill.text.encode()), provider=PROVIDER, why=_why(skill, queries))
            for skill in chosen
        ),
        queries=queries,
        bottleneck_prior=_bottleneck(task),
        earlier_experiments=earlier_experiments,
    )
    listed = canonical({"skills": [skill.model_dump(mode="json") for skill in event.skills]})
    return chosen, Outcome(events=(event,), files={"skills.json": listed})


def _score(skill: Skill, queries: tuple[str, ...]) -> int:
    return len(skill.tags & set(queries))


def _why(skill: Skill, queries: tuple[str, ...]) -> str:
    if skill.id in HYGIENE:
        return "hygiene: part of every plan"
    return "matches " + ", ".join(sorted(skill.tags & set(queries)))


def _bottleneck(task: Task) -> str:
    operation = find_operation(task.op)
    moved = operation.bytes_moved(task.shape, task.dtype)
    if moved < LAUNCH_BOUND_BYTES:
        return "launch"
    return "compute" if operation.flops(task.shape) / moved > 100 else "memory"
