"""The plan: hygiene always, three to five skills, the same for the same task."""

import itertools

import pytest

from forge.domain.digest import sha256
from forge.domain.tensors import DTYPES
from forge.events import PlanAccepted
from forge.languages import LANGUAGES
from forge.operations import OPERATIONS
from forge.pipeline.plan import HYGIENE, load_skills, plan
from tests.pipeline.making import made

TARGETS = {"cpp": ("cpu",), "cuda": ("h200",), "torch": ("cpu", "h200"), "triton": ("cpu", "h200")}
SLOTS = [
    (op, language, gpu) for op, language in itertools.product(OPERATIONS, LANGUAGES) for gpu in TARGETS[language]
]


@pytest.mark.parametrize(("op", "language", "gpu"), SLOTS)
def test_every_plan_has_three_to_five_skills_the_hygiene_ones_first(op: str, language: str, gpu: str) -> None:
    for dtype in DTYPES:
        task = made(op=op, language=language, gpu=gpu, dtype=dtype)
        skills, outcome = plan(task, run_id="r", earlier_experiments=2)
        assert 3 <= len(skills) <= 5
        assert len({skill.id for skill in skills}) == len(skills)
        assert {skill.id for skill in skills[:2]} == set(HYGIENE)
        assert all(skill.languages & {language, "any"} for skill in skills)
        (event,) = outcome.events
        assert isinstance(event, PlanAccepted)
        assert [one.id for one in event.skills] == [skill.id for skill in skills]
        assert all(one.why for one in event.skills)
        assert event.earlier_experiments == 2
        assert plan(task, run_id="r", earlier_experiments=2) == (skills, outcome)


def test_every_skill_is_named_by_its_own_bytes_and_says_what_it_is_about() -> None:
    skills = load_skills()
    assert set(HYGIENE) <= {skill.id for skill in skills}
    for skill in skills:
        assert skill.tags, skill.id
        assert skill.languages <= {*LANGUAGES, "any"}, skill.id
        assert skill.languages, skill.id
    _, outcome = plan(made(), run_id="r", earlier_experiments=0)
    (event,) = outcome.events
    assert isinstance(event, PlanAccepted)
    texts = {skill.id: skill.text for skill in skills}
    for one in event.skills:
        assert one.sha256 == sha256(texts[one.id].encode())


@pytest.mark.parametrize(
    ("shape", "prior"), [("batch=1,hidden_size=64", "launch"), ("batch=2048,hidden_size=4096", "memory")]
)
def test_small_work_is_bound_by_its_launch_and_large_by_memory(shape: str, prior: str) -> None:
    _, outcome = plan(made(shape=shape), run_id="r", earlier_experiments=0)
    (event,) = outcome.events
    assert isinstance(event, PlanAccepted)
    assert event.bottleneck_prior == prior
