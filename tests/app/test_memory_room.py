"""A container's limit counts as the machine's memory, if it is less."""

from pathlib import Path

import pytest

from forge.app.tasks.references import memory_bytes


@pytest.mark.parametrize(
    ("text", "expected"), [("1048576\n", 2**20), ("max\n", None), ("", None), (f"{2**62}\n", None)]
)
def test_the_smaller_of_the_machine_and_its_container_counts(text: str, expected: int | None, tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(text)
    whole = memory_bytes(tmp_path / "missing")
    assert whole > 2**28
    assert memory_bytes(limit) == (whole if expected is None else expected)
