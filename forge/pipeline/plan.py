"""Chooses the playbooks that an author gets, and says why.

Triage comes first. Then five skills are chosen from the two libraries: hygiene always, the operation's guide, the
language's playbook, and the others that fit best. The same task and the same libraries give the same plan.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from forge import __version__
from forge.domain.digest import canonical, digest_of
from forge.domain.task import Task
from forge.domain.verdict import ReasonCode
from forge.errors import UsageError
from forge.events import ChosenSkill, LessonProposed, PlanAccepted
from forge.events.plan import BestKernel, EarlierExperiment, SkillLibrary, Triage
from forge.operations import find_operation
from forge.operations.operation import OwnReference
from forge.pipeline.called_names import called_names
from forge.pipeline.lesson import AMENDED, amended, content_of
from forge.pipeline.outcome import Outcome
from forge.pipeline.skill_package import PACKAGE, PIN, read_package
from forge.pipeline.skill_ranking import Concept
from forge.pipeline.skill_search import Hit, search
from forge.pipeline.skills import EMBEDDED, Category, Skill, embedded_skills
from forge.pipeline.task_facts import Bottleneck, bottleneck, triage

MOST = 5
"""Number of skills in a plan: about half of a brief's default budget of tokens."""
SLOTS: tuple[Category, ...] = ("operation", "playbook")
"""Categories of which one skill each is chosen before the rest is filled by rank."""
REST: tuple[Category, ...] = ("technique", "playbook")
"""Categories of the skills that fill a plan's remaining places. A second guide to the same operation also may; guides
to other operations may not."""
_FAILURES: dict[ReasonCode, str] = {
    "INCORRECT_NUMERICAL": "numerical stability",
    "NON_FINITE": "numerical stability",
    "OUT_OF_BOUNDS": "unaligned vector access",
    "TOO_SLOW": "benchmarking",
    "RUNTIME_ERROR": "launch configuration",
}
"""Reason of an earlier failure -> words to search skills for."""
_COMMON = frozenset({"a", "and", "by", "each", "for", "in", "its", "of", "one", "other", "the", "to", "two", "with"})
"""Words that say nothing about a skill, so they aren't searched for."""
_LOW_PRECISION = ("int8", "uint8", "fp8_e4m3")
"""Element types below 16 bits, for which skills on quantization are searched."""

Lessons = Mapping[str, Sequence[LessonProposed]]
"""Lessons accepted into each playbook, in order, by the playbook's id."""
NO_LESSONS: Lessons = {}
Library = tuple[tuple[Skill, ...], tuple[SkillLibrary, ...]]
"""Skills, and the libraries that they were read from."""


def plan(
    task: Task,
    *,
    run_id: str,
    earlier_experiments: int,
    earlier: tuple[EarlierExperiment, ...] = (),
    best: BestKernel | None = None,
    lessons: Lessons = NO_LESSONS,
    home: Path | None = None,
) -> tuple[tuple[Skill, ...], Outcome]:
    """Choose skills for a task, with the accepted lessons added to them."""
    skills, libraries = read_libraries(home)
    skills = amended(skills, lessons)
    found = triage(task, earlier, best)
    prior = bottleneck(found)
    concepts = concepts_of(task, prior, found)
    chosen = choose(skills, concepts, task)
    event = PlanAccepted(
        task_id=task.task_id,
        run_id=run_id,
        skills=tuple(
            ChosenSkill(id=one.id, sha256=one.sha256, provider=one.provider, why=why) for one, why in chosen
        ),
        queries=tuple(concept.text for concept in concepts),
        bottleneck_prior=prior,
        earlier_experiments=earlier_experiments,
        triage=found,
        libraries=libraries,
    )
    blobs = tuple(content_of(one, one.text) for one, _ in chosen if one.provider == AMENDED)
    return tuple(one for one, _ in chosen), Outcome(
        events=(event,), files={"skills.json": listed(event)}, blobs=blobs
    )


def listed(event: PlanAccepted) -> bytes:
    """Return the bytes of the plan's file in the run's folder."""
    return canonical(event.model_dump(mode="json", include={"skills", "triage", "libraries", "bottleneck_prior"}))


def accepted(outcome: Outcome) -> PlanAccepted:
    """Return the PlanAccepted event of the phase's outcome."""
    (event,) = outcome.events
    assert isinstance(event, PlanAccepted)
    return event


def planned(event: PlanAccepted, *, home: Path | None, lessons: Lessons = NO_LESSONS) -> tuple[Skill, ...]:
    """Return the skills of a recorded plan, found by digest; raise UsageError if a library has changed."""
    known = {one.sha256: one for one in amended(read_libraries(home)[0], lessons)}
    for one in event.skills:
        if one.sha256 not in known:
            message = f"skill {one.id!r} isn't what it was when run {event.run_id!r} was planned"
            raise UsageError(f"{message}: expected sha256 {one.sha256}", hint=f"forge run open {event.task_id}")
    return tuple(known[one.sha256] for one in event.skills)


def concepts_of(task: Task, prior: Bottleneck, found: Triage) -> tuple[Concept, ...]:
    """Return what to search for: the operation, its words, its types, the expected bottleneck, earlier failures."""
    operation = find_operation(task.op)
    elements = {spec.element for spec in (*operation.inputs, *operation.outputs)}
    failed = sorted({_FAILURES[one.reason] for one in found.earlier if one.reason in _FAILURES})
    if operation.own is not None:
        return _concepts_of_source(operation.own, task, prior, failed)
    words = dict.fromkeys(word for word in operation.summary.lower().replace(",", " ").split() if word not in _COMMON)
    guided = operation.guide or task.op
    return (
        Concept(guided, weight=4.0, phrase=True),
        Concept(guided, weight=1.5),
        Concept(" ".join(words), weight=0.25),
        *((Concept("quantise int8 fp8"),) if elements & set(_LOW_PRECISION) else ()),
        Concept(f"{prior} bound", phrase=True),
        Concept(task.language, weight=0.5),
        *(Concept(text, weight=1.5) for text in failed),
    )


def _concepts_of_source(
    own: OwnReference, task: Task, prior: Bottleneck, failed: Sequence[str]
) -> tuple[Concept, ...]:
    """Return what to search for an own operation: what its reference calls, and how it is named."""
    called = called_names(own.source)
    return (
        *(Concept(name.replace("_", " "), weight=3.0, phrase=True) for name in called),
        Concept(" ".join([*called, *own.contract.slug.split("_")]), weight=0.25),
        Concept(f"{prior} bound", phrase=True),
        Concept(task.language, weight=0.5),
        *(Concept(text, weight=1.5) for text in failed),
    )


def _guides(task: Task) -> frozenset[str]:
    """Return the tags of a guide that is one for this operation."""
    operation = find_operation(task.op)
    own = operation.own
    return frozenset({operation.guide or task.op}) if own is None else frozenset(called_names(own.source))


def choose(skills: Sequence[Skill], concepts: Sequence[Concept], task: Task) -> tuple[tuple[Skill, str], ...]:
    """Return hygiene, the best skill of each slot, then the best of the rest, each with its reason."""
    ordered = sorted(skills, key=lambda one: one.id)
    fitting = [one for one in ordered if one.fits(language=task.language, platform=task.target.platform)]
    hygiene = [(one, "hygiene: part of every plan") for one in fitting if one.front.category == "hygiene"]
    found = search([one for one in fitting if one.front.category != "hygiene"], concepts)
    # the sort is stable: a guide with the operation among its tags comes before one that only mentions it
    guides, own = _guides(task), find_operation(task.op).own is not None
    hits = sorted(found, key=lambda hit: not _names(hit, guides))
    if own:  # a guide to something else would mislead its author
        hits = [hit for hit in hits if hit.skill.front.category != "operation" or _names(hit, guides)]
    first = [next((hit for hit in hits if hit.skill.front.category == slot), None) for slot in SLOTS]
    slots = [hit for hit in first if hit is not None]
    others = [hit for hit in found if hit not in slots]
    rest = [hit for hit in others if hit.skill.front.category in REST or _names(hit, guides)]
    ranked = [*slots, *rest][: MOST - len(hygiene)]
    return (*hygiene, *((hit.skill, _why(hit)) for hit in ranked))


def _names(hit: Hit, guides: frozenset[str]) -> bool:
    """Return True if the guide's tags name the operation."""
    tags = {tag.replace("-", "_") for tag in hit.skill.front.tags}
    return hit.skill.front.category == "operation" and not guides.isdisjoint(tags)


def _why(hit: Hit) -> str:
    role = {"operation": "guide to the operation", "playbook": "playbook of the language"}
    said = role.get(hit.skill.front.category, hit.skill.front.category)
    return f"{said}: matches {'; '.join(hit.matched)} (BM25 {hit.ranked.shown_score})"


def read_libraries(home: Path | None) -> Library:
    """Read the embedded library, and the package in `home`; raise UsageError if the package isn't the pinned one."""
    embedded = embedded_skills()
    first = _described_library(embedded, provider=EMBEDDED, version=__version__)
    if home is None:
        return embedded, (first,)
    packaged = read_package(home)
    absent = SkillLibrary(provider=PACKAGE, state="absent", version=None, sha256=None, skills=0)
    second = _described_library(packaged, provider=PACKAGE, version=PIN) if packaged else absent
    return (*embedded, *packaged), (first, second)


def _described_library(skills: tuple[Skill, ...], *, provider: str, version: str) -> SkillLibrary:
    digest = digest_of({one.id: one.sha256 for one in skills})
    return SkillLibrary(provider=provider, state="read", version=version, sha256=digest, skills=len(skills))
