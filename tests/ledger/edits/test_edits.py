"""Each edit of a ledger's files by their owner is found by what its line says, and by nothing less."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.app.ledger.ledger_answers import verify_ledger
from forge.app.workspace import Workspace
from forge.errors import CheckpointRefused, ForgeError
from tests.cli.asking import built_once, copied
from tests.ledger.edits.base import build
from tests.ledger.edits.catalogue import EDITS
from tests.ledger.edits.copy import Copy, Edit

OLD_KEPT = {
    "all after an old checkpoint, signed by a key that was adopted",
    "a key adopted at the end, and a checkpoint signed by it",
}
"""Edits against which the older checkpoint and key are held: the newest one isn't always at hand."""


def every_edit() -> Iterator[object]:
    for kind, edits in EDITS.items():
        for edit in edits:
            yield pytest.param(edit, id=f"{kind}: {edit.name}")


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory, "edits_base", build)


@pytest.fixture
def copy(base: Path, tmp_path: Path) -> Copy:
    return Copy(copied(base, tmp_path / "w"))


@pytest.mark.parametrize("edit", list(every_edit()))
def test_an_edit_is_found_by_what_its_line_says(edit: Edit, copy: Copy) -> None:
    before = content(copy.home)
    edit.act(copy)
    assert content(copy.home) != before
    found = by(copy, edit)
    assert found == edit.found, verify_ledger(copy.home)["problems"]
    assert (edit.found in ("kept", "nothing")) == bool(edit.why)
    if found != "verify":
        readers_accept(copy)


def content(home: Path) -> dict[str, tuple[object, ...]]:
    """Every file and folder, what it is, and its bytes."""
    return {
        path.relative_to(home).as_posix(): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() and not path.is_symlink() else None,
        )
        for path in home.rglob("*")
    }


def by(copy: Copy, edit: Edit) -> str:
    """What finds it first: plain verification, all of it, or what was kept elsewhere."""
    if not verify_ledger(copy.home)["ok"]:
        return "verify"
    if not verify_ledger(copy.home, full=True)["ok"]:
        return "--full"
    when = "old" if edit.name in OLD_KEPT else "new"
    kept = {"checkpoint": copy.kept(f"{when}.checkpoint"), "key": str(copy.kept(f"{when}.ledger.vkey"))}
    return "nothing" if verify_ledger(copy.home, **kept)["ok"] else "kept"


def readers_accept(copy: Copy) -> None:
    """What no verification finds must stop no command either."""
    try:
        with Workspace.open(copy.home) as workspace:
            workspace.run_states()
            workspace.publication.build_anew()
    except CheckpointRefused:
        raise
    except ForgeError as error:
        pytest.fail(f"a reader refuses what verification accepts: {error.message}")


def test_the_base_is_sound_however_it_is_checked(copy: Copy) -> None:
    for when in ("old", "new"):
        kept = {"checkpoint": copy.kept(f"{when}.checkpoint"), "key": str(copy.kept(f"{when}.ledger.vkey"))}
        report = verify_ledger(copy.home, full=True, **kept)
        assert (report["ok"], report["problems"]) == (True, [])
    copy.write(copy.rows())
    assert verify_ledger(copy.home, full=True)["problems"] == []
    readers_accept(copy)


def test_edits_are_distinct_and_each_kind_has_as_many_as_were_promised() -> None:
    counts = [27, 13, 13, 27, 4, 11, 2, 5, 32, 16, 16, 14, 36]
    assert [len(edits) for edits in EDITS.values()] == counts
    assert sum(counts) == 216
    for edits in EDITS.values():
        assert len({edit.name for edit in edits}) == len(edits)
