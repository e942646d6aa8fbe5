"""The templates that ship with Forge: folders of candidates with a space that fits them."""

import ast
import random
from dataclasses import replace
from pathlib import Path

import pytest

from forge.authors.search.space import SPACE_FILE
from forge.authors.search.template import Template, parse_template
from forge.domain.candidate import Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.verdict import Accepted
from forge.lab.verification import examine
from forge.operations import find_operation
from tests.candidates import EXAMPLES, job_for

FOLDERS = sorted(path.name for path in (EXAMPLES / "templates").iterdir())
RUN = ("cpp_softmax", "triton_silu_mul")
"""Templates that are judged here, one of each language; the others differ from shipped kernels by constants alone."""


def shipped(name: str) -> Template:
    folder: Path = EXAMPLES / "templates" / name
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == sorted((*REQUIRED_FILES, SPACE_FILE))
    files = {file: (folder / file).read_bytes() for file in REQUIRED_FILES}
    return parse_template(files, (folder / SPACE_FILE).read_bytes())


def test_there_are_enough_templates_in_each_language() -> None:
    assert sum(name.startswith("triton_") for name in FOLDERS) >= 12
    assert sum(name.startswith("cpp_") for name in FOLDERS) >= 3


@pytest.mark.parametrize("name", FOLDERS)
def test_a_templates_settings_become_candidates_that_differ(name: str) -> None:
    template = shipped(name)
    assert name == f"{template.metadata.language}_{template.metadata.op}"
    assert find_operation(template.metadata.op)
    drawn = [template.space.draw(random.Random(seed)) for seed in range(12)]
    drafts = {template.draft(setting).candidate_sha256 for setting in (template.space.own, *drawn)}
    assert None not in drafts
    assert len(drafts) > 6
    for setting in drawn:
        assert ast.parse(template.draft(setting).files["kernel.py"])


@pytest.mark.parametrize("name", FOLDERS)
def test_each_parameter_is_used_beside_its_own_line(name: str) -> None:
    template = shipped(name)
    for parameter in template.space.values:
        assert template.files["kernel.py"].count(parameter) >= 2, parameter


@pytest.mark.slow
@pytest.mark.usefixtures("walls", "short_series")
@pytest.mark.parametrize("name", RUN)
def test_a_template_is_accepted_as_it_is(name: str) -> None:
    own = shipped(name).own
    metadata = Metadata.model_validate_json(own.files["metadata.json"])
    job = job_for(own.files["kernel.py"], language=metadata.language, operation=metadata.op, forbidding=True)
    job = replace(job, files={path: text.encode() for path, text in own.files.items()}, metadata=metadata)
    examined = examine(job, progress=lambda _: None)
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
