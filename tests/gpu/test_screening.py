"""Drafts in Triton, screened by the launch plans of all of them in one launcher."""

import random
from dataclasses import replace

import pytest

from forge.app.sessions.author_folders import template_files
from forge.authors.search.space import SPACE_FILE
from forge.authors.search.template import Template, parse_template
from forge.domain.authoring import Draft, FailedTrial, Screen, Setting, TimedTrial
from forge.lab.job import Job
from forge.lab.screen.screening import screen
from forge.operations import find_operation
from tests.candidates import EXAMPLES
from tests.gpu.place import gpu
from tests.gpu.test_plans import on_the_gpu

SHAPE = {"tokens": 64, "vocab_size": 32000}
FEWER_PARTS, MORE_PARTS = {"BLOCK": 16384}, {"PROGRAMS": 2112}
"""Settings that read a row in 2 and in 32 parts. The template's own has 3, so their workspaces differ in size."""


@pytest.fixture(scope="module")
def template() -> Template:
    files = template_files(EXAMPLES / "templates" / "triton_cross_entropy")
    return parse_template(files, files.pop(SPACE_FILE))


@pytest.fixture(scope="module")
def job(template: Template) -> Job:
    asked = on_the_gpu(template.files["kernel.py"])
    operation = find_operation("cross_entropy")
    return replace(
        asked,
        operation=operation,
        entry_point=operation.name,
        shape=SHAPE,
        held_out=(),
        dtype="bf16",
        gpu=gpu(),
    )


def with_values(template: Template, values: dict[str, int]) -> Draft:
    return template.draft(Setting(values=template.space.own.values | values))


def changed(template: Template, new: str) -> Draft:
    """A draft that stores something else where the sums of a part belong."""
    own, old = template.own, "tl.store(sums + place, part)"
    assert old in own.files["kernel.py"]
    return own.model_copy(update={"files": {**own.files, "kernel.py": own.files["kernel.py"].replace(old, new)}})


def test_plans_with_other_workspaces_share_a_launcher_and_bad_drafts_are_named(template: Template, job: Job) -> None:
    drafts = (
        template.own,
        with_values(template, FEWER_PARTS),
        with_values(template, MORE_PARTS),
        changed(template, "tl.store(sums + place, part * 2)"),
        changed(template, "tl.store(sums + place, misspelt)"),
        changed(template, "tl.store(sums + place + (1 << 40), part)"),
    )
    found = screen(job, Screen(drafts=drafts, reference=template.own), rng=random.Random(1), progress=print)
    results = [trial.result for trial in found.screened.trials]
    assert [type(one) for one in results] == [TimedTrial] * 3 + [FailedTrial] * 3, results
    assert [one.stage for one in results if isinstance(one, FailedTrial)] == ["check"] * 3
