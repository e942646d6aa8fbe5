"""metadata.json may name a candidate's author, and no writer of events that isn't the one who hands it in."""

import json
from pathlib import Path

import pytest

from forge.events import CandidateRejected, CandidateSubmitted
from forge.pipeline.submit import submit
from tests.candidates import EXAMPLES
from tests.pipeline.making import made


def handed_in(folder: Path, *, named: str | None, by: str) -> object:
    for file in (EXAMPLES / "honest_cpp").glob("*.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    metadata = json.loads((folder / "metadata.json").read_text()) | {"author": named}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    task = made(op="fused_add_rmsnorm", language="cpp")
    return submit(folder, task=task, run_id="r", untrusted_author=by, judged_before=lambda _: None).events[0]


@pytest.mark.parametrize(
    ("named", "by"),
    [
        ("system:gate", "agent:ada"),
        ("cli:root", "agent:ada"),
        ("agent:grace", "agent:ada"),
        ("import:other", "a person"),
        ("system:gate", "a person"),
    ],
)
def test_another_writers_name_is_refused(named: str, by: str, tmp_path: Path) -> None:
    event = handed_in(tmp_path, named=named, by=by)
    assert isinstance(event, CandidateRejected)
    assert f"metadata.json: author is {named!r}" in event.reason.message


@pytest.mark.parametrize(
    ("named", "by", "author"),
    [
        (None, "agent:ada", "agent:ada"),
        ("agent:ada", "agent:ada", "agent:ada"),
        ("agent:grace", "a person", "agent:grace"),
        ("Ada: a person", "agent:ada", "Ada: a person"),
    ],
)
def test_a_name_that_is_no_other_writers_is_recorded(named: str | None, by: str, author: str, tmp_path: Path) -> None:
    event = handed_in(tmp_path, named=named, by=by)
    assert isinstance(event, CandidateSubmitted)
    assert event.author == author
