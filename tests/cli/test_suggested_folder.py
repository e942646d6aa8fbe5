"""A suggested folder is one that the suggested command can make."""

from pathlib import Path

import pytest

from forge.cli.suggest import MOST_NAMES, unused


def test_a_name_that_is_taken_gets_the_first_free_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert unused("my-kernel") == "my-kernel"
    (tmp_path / "my-kernel").mkdir()
    (tmp_path / "my-kernel-2").symlink_to("nowhere")
    assert unused("my-kernel") == "my-kernel-3"
    for number in range(3, MOST_NAMES):
        (tmp_path / f"my-kernel-{number}").touch()
    assert unused("my-kernel") == "my-kernel"
