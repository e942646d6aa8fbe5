"""The demonstration's stories: what they name is there, and the cheats among it are refused."""

import json
from pathlib import Path

import pytest

from forge.app.demo.demo import GPUS, ON_A_CPU, Story, examples_folder, make_workspace, on_a_gpu, story_here
from forge.app.demo.search_demo import OPTIONS, POLICY, SEED, demo_source
from forge.app.workspace import Workspace
from forge.authors.kinds import make_author
from forge.domain.authoring import BudgetLeft, Screen
from forge.domain.candidate import Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.policy import new_policy
from forge.domain.tensors import parse_dtype, parse_shape
from forge.domain.verdict import Rejected
from forge.errors import UsageError
from forge.lab.job import Job
from forge.lab.screen.host_clock import GROUP
from forge.lab.verification import examine
from forge.languages import find_language
from forge.operations import find_operation
from forge.platforms import PROCESSORS
from forge.platforms.cuda import devices
from tests.candidates import isolation, job_for

STORIES = [ON_A_CPU, *map(on_a_gpu, GPUS)]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.gpu)
def test_a_story_names_examples_of_its_own_slot(story: Story) -> None:
    assert story.gpu in PROCESSORS
    assert parse_shape(story.shape, find_operation(story.op).axes)
    parse_dtype(story.dtype)
    for folder in (story.honest, story.cheat):
        described = json.loads((examples_folder() / folder / "metadata.json").read_text())
        assert (described["op"], described["language"]) == (story.op, story.language)


@pytest.mark.skipif(bool(devices()), reason="this machine has a GPU")
def test_without_a_gpu_the_story_is_the_processors() -> None:
    assert story_here() is ON_A_CPU


@pytest.mark.usefixtures("walls")
def test_the_gpus_cheat_is_refused_for_its_remembered_answer() -> None:
    """Through Triton's interpreter, where there is no GPU."""
    story = on_a_gpu("h200")
    folder = examples_folder() / story.cheat
    files = {name: (folder / name).read_bytes() for name in REQUIRED_FILES}
    like = job_for("", language="triton")
    job = Job(
        operation=find_operation(story.op),
        language=find_language(story.language),
        shape={"batch": 4, "hidden_size": 64},
        held_out=(),
        dtype="bf16",
        policy=like.policy,
        isolation=isolation(),
        files=files,
        metadata=Metadata.model_validate_json(files["metadata.json"]),
        entry_point=story.op,
        interpreted=True,
        arch="sm_90",
    )
    examined = examine(job, progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected)
    assert examined.verdict.reason.code == "REPLAYED_OUTPUT"


def test_the_search_has_a_small_policy_and_changes_no_workspace(tmp_path: Path) -> None:
    with make_workspace(tmp_path / "new", POLICY) as workspace:
        assert (workspace.policy.baselines, workspace.policy.regimes) == (("eager",), ("cold",))
        assert workspace.policy.process_pairs < new_policy().process_pairs
        assert not workspace.policy.confirmation
    with Workspace.create(tmp_path / "mine", origin="mine"):
        pass
    for taken in (tmp_path / "mine", tmp_path / "file"):
        if not taken.exists():
            taken.write_text("a file")
        with pytest.raises(UsageError):
            make_workspace(taken)
    assert not (tmp_path / "mine" / "policy.toml").exists()


def test_the_demonstration_leaves_one_regime_out_and_keeps_the_rest_of_the_rule(tmp_path: Path) -> None:
    with make_workspace(tmp_path / "new") as workspace:
        assert workspace.policy == new_policy().model_copy(update={"regimes": ("cold",)})


def test_the_search_is_over_a_shipped_template_of_the_processors_slot() -> None:
    author = make_author(demo_source())
    step = author.propose(SEED, (), BudgetLeft(candidates=1))
    assert isinstance(step, Screen)
    assert len(step.drafts) == OPTIONS["most_trials"] < GROUP
    described = json.loads(step.reference.files["metadata.json"])
    assert (described["op"], described["language"]) == (ON_A_CPU.op, ON_A_CPU.language)
