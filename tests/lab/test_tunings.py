"""Which tuning's choices stay in the folder for what torch.compile leaves."""

import os
from pathlib import Path

import pytest

from forge.lab.baselines import compiled_copy
from forge.lab.timing.tunings import FastestTuning, choices


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with the choices of an earlier function and of a first tuning."""
    folder = tmp_path / "kept"
    for name in ("ab/earlier.best_config", "cd/first.best_config", "cd/kernel.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("of the first")
    return folder


def test_choices_are_found_in_every_folder(kept: Path) -> None:
    (kept / "folder.best_config").mkdir()
    assert choices(kept) == {Path("ab/earlier.best_config"), Path("cd/first.best_config")}


def test_the_fastest_tunings_choices_stay_with_those_of_other_functions(kept: Path) -> None:
    with compiled_copy(kept) as copy:
        (copy / "cd" / "first.best_config").write_text("of the second")
        (copy / "cd" / "only_here.cubin").write_text("code")
        FastestTuning(1.0, kept, copy).install()
    found = {path.relative_to(kept).as_posix(): path.read_text() for path in kept.rglob("*") if path.is_file()}
    assert found == {
        "ab/earlier.best_config": "of the first",
        "cd/first.best_config": "of the second",
        "cd/kernel.py": "of the first",
        "cd/only_here.cubin": "code",
    }


def test_the_first_tuning_stays_where_it_is(kept: Path) -> None:
    FastestTuning(1.0, kept, kept).install()
    assert (kept / "cd" / "first.best_config").read_text() == "of the first"


def test_a_link_that_a_guest_planted_leads_nothing_of_the_host_astray(kept: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deeper").mkdir(parents=True)
    (outside / "file").write_text("of the host")
    with compiled_copy(kept) as copy:
        (copy / "cd" / "first.best_config").write_text("of the second")
        (kept / "cd" / "first.best_config").unlink()
        os.symlink(outside / "file", kept / "cd" / "first.best_config")
        os.symlink(outside / "deeper", kept / "cd" / "folder")
        os.symlink(outside, kept / "planted")
        os.symlink(outside / "file", copy / "cd" / "planted.best_config")
        FastestTuning(1.0, kept, copy).install()
    assert (outside / "file").read_text() == "of the host"
    assert (outside / "deeper").is_dir()
    assert [path for path in kept.rglob("*") if path.is_symlink()] == []
    assert (kept / "cd" / "first.best_config").read_text() == "of the second"
