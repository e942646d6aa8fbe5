"""A brief changes only after a person has read the new one."""

import pytest

from tests.pipeline.golden import BRIEFS, FOLDER, brief


@pytest.mark.parametrize("name", BRIEFS)
def test_a_brief_is_as_it_was_read(name: str) -> None:
    assert brief(name) == (FOLDER / f"{name}.md").read_text(), "meant? python -m tests.pipeline.golden, and read it"


def test_no_brief_is_kept_that_nobody_renders() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(BRIEFS)
