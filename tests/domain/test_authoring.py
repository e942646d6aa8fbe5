"""What an author and its session say to each other."""

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from forge.domain.authoring import Draft, Judged, LogEntry, Screen, Setting, Step
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.verdict import Rejected

METADATA = {"name": "one", "op": "softmax", "language": "cpp"}
FILES = dict.fromkeys(REQUIRED_FILES, "x") | {"metadata.json": json.dumps(METADATA)}
DRAFT = Draft(files=FILES, hypothesis="BLOCK is 8 instead of 4", setting=Setting(values={"BLOCK": 8}))


def test_a_draft_names_the_candidate_that_it_becomes():
    other = DRAFT.model_copy(update={"files": FILES | {"kernel.py": "y"}})
    assert DRAFT.candidate_sha256 not in (None, other.candidate_sha256)
    assert DRAFT.sha256 != other.sha256


@pytest.mark.parametrize("broken", [{"metadata.json": "{"}, {"metadata.json": '{"name": "one"}'}])
def test_a_draft_that_can_be_no_candidate_names_none(broken: dict[str, str]):
    assert DRAFT.model_copy(update={"files": FILES | broken}).candidate_sha256 is None
    assert DRAFT.model_copy(update={"files": {"kernel.py": "x"}}).candidate_sha256 is None


def test_steps_and_entries_come_back_from_json_as_they_were():
    step = Screen(drafts=(DRAFT,), reference=DRAFT)
    assert TypeAdapter(Step).validate_json(step.model_dump_json()) == step
    reason = {"code": "TOO_SLOW", "message": "0.9"}
    judged = Judged(draft="a" * 64, candidate="b" * 64, verdict=Rejected.model_validate({"reason": reason}))
    assert TypeAdapter(LogEntry).validate_json(judged.model_dump_json()) == judged


def test_one_screening_has_at_most_as_many_drafts_as_a_launcher_holds():
    with pytest.raises(ValidationError):
        Screen(drafts=(DRAFT,) * 33, reference=DRAFT)
    with pytest.raises(ValidationError):
        Screen(drafts=(), reference=DRAFT)
