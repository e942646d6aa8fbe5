"""A dry run of what changes a ledger's keys or copies refuses what the command refuses, and records nothing."""

import shutil
from pathlib import Path

import pytest

from tests.cli.asking import Answer, ask, files, history
from tests.cli.test_signing import roll_back

DRY = "--dry-run"


def both(*command: object) -> tuple[Answer, Answer]:
    """Ask a command as a dry run, then in earnest."""
    return ask(*command, DRY), ask(*command)


def bytes_of(home: Path) -> dict[str, bytes]:
    """Return the private keys and what they signed."""
    return {path.name: path.read_bytes() for path in (home / "keys").iterdir()}


@pytest.fixture
def backup(empty: Path, tmp_path: Path) -> Path:
    assert ask("ledger", "backup", tmp_path / "backup", "--home", empty).status == 0
    return tmp_path / "backup"


def test_a_dry_rotation_names_the_key_that_would_retire(empty: Path) -> None:
    key = (empty / "kernel_registry" / "ledger.vkey").read_text().strip()
    before, keys = history(empty), bytes_of(empty)
    shown = ask("ledger", "rotate-key", DRY, "--home", empty, "--json")
    assert (shown.status, shown.document["recorded"], shown.document["would_retire"]) == (0, False, key)
    assert "nothing was recorded" in shown.err
    assert DRY not in shown.last
    assert {name: held for name, held in bytes_of(empty).items() if name != ".lock"} == {
        name: held for name, held in keys.items() if name != ".lock"
    }
    assert history(empty) == before


def test_a_rotation_without_its_key_is_refused_dry_too(empty: Path) -> None:
    shutil.rmtree(empty / "keys")
    dry, real = both("ledger", "rotate-key", "--home", empty)
    assert dry.status == 2
    assert (dry.status, dry.err) == (real.status, real.err)


def test_a_dry_restore_makes_nothing_and_foresees_who_signs(empty: Path, backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "restored"
    shown = ask("ledger", "restore", backup, target, DRY, "--json")
    assert (shown.status, shown.document["recorded"], shown.document["signs"]) == (0, False, False)
    assert not target.parent.exists()
    made = ask("ledger", "restore", backup, target, "--json").document
    told = {name: value for name, value in shown.document.items() if name in made}
    assert told == {name: made[name] for name in told}
    assert len(told) >= 5
    refused = both("ledger", "restore", backup, empty)
    assert [one.status for one in refused] == [2, 2]
    below = both("ledger", "restore", backup, backup / "kernel_registry.db" / "in_a_file")
    assert [one.status for one in below] == [2, 2]


def test_a_dry_restore_refuses_a_backup_that_lacks_signed_events(empty: Path, backup: Path, tmp_path: Path) -> None:
    home = tmp_path / "moved"
    home.mkdir()
    assert ask("ledger", "rotate-key", "--home", empty).status == 0  # signs events that the backup lacks
    shutil.copytree(empty / "keys", home / "keys")
    dry, real = both("ledger", "restore", backup, home)
    assert dry.status == 1
    assert (dry.status, dry.err) == (real.status, real.err)
    keys, before = bytes_of(home), files(home)
    shown = ask("ledger", "restore", backup, home, "--accept-loss", DRY, "--json").document
    assert shown["lost_signed_events"] > 0
    assert shown["signs"] is True
    assert bytes_of(home) == keys
    assert files(home) == before


def test_a_dry_import_checks_the_bundle_and_keeps_nothing(empty: Path, tmp_path: Path) -> None:
    bundle, other = tmp_path / "one.bundle", tmp_path / "other"
    assert ask("ledger", "export", bundle, "--home", empty).status == 0
    assert ask("init", other).status == 0
    before = history(other)
    shown = ask("ledger", "import", bundle, DRY, "--home", other, "--json")
    assert (shown.status, shown.document["recorded"]) == (0, False)
    assert shown.document["new_events"] > 0
    assert "only the bundle itself vouches" in shown.err
    assert ask("ledger", "imported", "--home", other, "--json").document == []
    assert history(other) == before
    cut = tmp_path / "cut.bundle"
    cut.write_bytes(bundle.read_bytes()[:-20])
    dry, real = both("ledger", "import", cut, "--home", other)
    assert (dry.status, dry.err) == (real.status, real.err)
    assert dry.status != 0


def test_a_dry_recovery_names_what_it_would_remove_and_keeps_it(empty: Path) -> None:
    left = empty / "keys" / ".part-key"
    left.write_bytes(b"half")
    before = history(empty)
    shown = ask("ledger", "recover", DRY, "--home", empty)
    assert (shown.status, "remove keys/.part-key" in shown.out) == (0, True)
    assert "nothing was recorded" in shown.err
    assert ask("ledger", "recover", DRY, "--home", empty, "--json").document["recorded"] is False
    assert left.exists()
    assert history(empty) == before
    assert "removed keys/.part-key" in ask("ledger", "recover", "--home", empty).out
    assert not left.exists()


def test_a_ledger_that_was_cut_off_refuses_a_dry_rotation(empty: Path) -> None:
    assert ask("ledger", "checkpoint", "--home", empty).status == 0
    assert ask("ledger", "rotate-key", "--home", empty).status == 0
    roll_back(empty, 1)
    dry, real = both("ledger", "rotate-key", "--home", empty)
    assert dry.status == 1
    assert (dry.status, dry.err) == (real.status, real.err)
