"""One key for a ledger from the command line: verify says what it vouches for, and it can be carried elsewhere."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.app.prepared import rejected_run
from tests.cli.asking import ask
from tests.cli.test_signing import roll_back

SHIPPED = Path(__file__).parents[2]
VERIFY = ("ledger", "verify")


def go_on(home: Path) -> None:
    """Record something more."""
    (task, *_) = ask("task", "list", "--home", home, "--json").document
    assert ask("run", "open", task["task_id"], "--home", home).status == 0


@pytest.fixture
def word(tmp_path: Path) -> Path:
    """A file with a passphrase."""
    file = tmp_path / "word"
    file.write_text("correct horse battery\n")
    return file


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """The ledger that ships, in a workspace that may be changed."""
    home = tmp_path / "shipped"
    home.mkdir()
    shutil.copy(SHIPPED / "kernel_registry.db", home)
    (home / "kernel_registry").mkdir()
    for name in ("checkpoint", "ledger.vkey"):
        shutil.copy(SHIPPED / "kernel_registry" / name, home / "kernel_registry")
    (home / "forge_runs").symlink_to(SHIPPED / "forge_runs")
    return home


@pytest.mark.slow
def test_the_shipped_ledger_without_its_last_three_events_is_found_by_plain_verify(shipped: Path) -> None:
    with closing(sqlite3.connect(shipped / "kernel_registry.db")) as connection:
        (length,) = connection.execute("SELECT max(seq) FROM event").fetchone()
    assert ask(*VERIFY, "--home", shipped).status == 0
    roll_back(shipped, length - 3)
    answer = ask(*VERIFY, "--home", shipped, "--json")
    assert answer.status == 1
    assert [(one["what"], one["found"]) for one in answer.document["problems"]] == [
        ("kernel_registry/checkpoint", "truncated")
    ]
    assert "events that were signed are missing" in answer.err


@pytest.mark.slow
def test_verify_says_which_adoptions_of_the_shipped_ledger_nobody_vouched_for(shipped: Path) -> None:
    report = ask(*VERIFY, "--home", shipped, "--json").document
    unvouched = [one["seq"] for one in report["keys"] if not one["vouched"]]
    answer = ask(*VERIFY, "--home", shipped)
    assert [one["how"] for one in report["keys"]] == ["opened"] + ["adopted"] * len(unvouched)
    assert f"adopted at event {', '.join(map(str, unvouched))}; " in answer.err
    for key in report["keys"]:
        assert f"{key['first']} to {key['last']}" in answer.out
    first = report["keys"][0]
    trusted = ask(*VERIFY, "--key", first["key"], "--home", shipped, "--json")
    assert (trusted.status, trusted.document["verdict"]) == (1, "unvouched")
    assert trusted.document["vouched_for"] == first["last"]
    assert "trust only the events that it vouches for" in trusted.err


@pytest.mark.slow
def test_a_new_key_on_the_shipped_ledger_vouches_for_all_of_it(shipped: Path) -> None:
    made = ask("ledger", "checkpoint", "--new-key", "--home", shipped, "--json")
    assert made.status == 0
    assert made.document["unvouched_adoptions"][-1] == made.document["size"]
    report = ask(*VERIFY, "--key", made.document["key"], "--home", shipped, "--json")
    assert (report.status, report.document["verdict"]) == (0, "vouched")
    assert report.document["vouched_for"] == made.document["size"]


@pytest.mark.slow
def test_a_key_is_handed_over_from_one_workspace_to_a_copy(home: Path, word: Path, tmp_path: Path) -> None:
    rejected_run(home, seal=True)
    copy = Path(shutil.copytree(home, tmp_path / "copy", ignore=shutil.ignore_patterns("keys")))
    file = tmp_path / "ledger.forge-key"
    with_word = ("--passphrase-file", word)
    made = ask("ledger", "key", "export", file, *with_word, "--home", home, "--json")
    assert (made.status, made.document["signs_here"]) == (0, False)
    assert file.stat().st_mode & 0o777 == 0o600
    assert ask("ledger", "key", "export", file, *with_word, "--home", home).status == 2
    shown = ask("ledger", "key", "show", "--home", home).out
    assert ("False" in shown, "[]" in shown) == (False, False), "words of Python's"
    assert not ask("ledger", "key", "show", "--home", home, "--json").document["private_key_here"]
    assert ask("ledger", "checkpoint", "--home", home).last == "try: forge ledger key import --help"
    taken = ask("ledger", "key", "import", file, *with_word, "--home", copy, "--json")
    assert (taken.status, taken.document["private_key_here"]) == (0, True), taken.err
    go_on(copy)
    assert ask("ledger", "checkpoint", "--home", copy).status == 0
    key = (home / "kernel_registry" / "ledger.vkey").read_text().strip()
    report = ask(*VERIFY, "--key", key, "--home", copy, "--json").document
    assert (report["ok"], report["verdict"], len(report["keys"])) == (True, "vouched", 1)


def test_a_key_of_another_ledger_or_no_passphrase_is_refused(home: Path, word: Path, tmp_path: Path) -> None:
    other, file = tmp_path / "other", tmp_path / "key"
    assert ask("init", other).status == 0
    assert ask("ledger", "key", "export", file, "--keep", "--passphrase-file", word, "--home", other).status == 0
    answer = ask("ledger", "key", "import", file, "--passphrase-file", word, "--home", home)
    assert answer.status == 2
    assert (other / "kernel_registry" / "ledger.vkey").read_text().strip() in answer.error
    assert (home / "kernel_registry" / "ledger.vkey").read_text().strip() in answer.error
    for bad in (tmp_path / "none", tmp_path):
        answer = ask("ledger", "key", "import", file, "--passphrase-file", bad, "--home", home)
        assert answer.status == 2
        answer = ask("ledger", "key", "import", bad, "--passphrase-file", word, "--home", home)
        assert answer.status == 2
    assert "--passphrase-file" in ask("ledger", "key", "export", tmp_path / "x", "--home", home).error


def test_clones_of_one_user_share_one_key_and_what_it_signed_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_KEYS", str(tmp_path / "mine"))
    first, second = tmp_path / "first", tmp_path / "second"
    assert ask("init", first).status == 0
    assert not (first / "keys").exists()
    shutil.copytree(first, second)
    assert ask("ledger", "rotate-key", "--home", second).status == 0
    answer = ask("ledger", "checkpoint", "--home", first)
    assert (answer.status, answer.last) == (1, "try: forge ledger verify"), "it is the older copy now"
    report = ask(*VERIFY, "--home", first, "--json")
    assert {one["found"] for one in report.document["problems"]} == {"truncated"}
    assert ask(*VERIFY, "--home", second).status == 0
    assert ask("init", tmp_path / "third").status == 0, "another log's keys may lie there too"
    monkeypatch.setenv("FORGE_KEYS", str(tmp_path / "no" / "such"))
    assert "FORGE_KEYS" in ask("run", "list", "--home", second).error


def test_a_backup_takes_the_keys_of_its_own_ledger_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_KEYS", str(tmp_path / "mine"))
    for name in ("first", "second"):
        assert ask("init", tmp_path / name).status == 0
    assert ask("ledger", "backup", tmp_path / "backup", "--with-key", "--home", tmp_path / "first").status == 0
    assert len(list((tmp_path / "mine").glob("*.key"))) == 2
    assert len(list((tmp_path / "backup" / "keys").glob("*.key"))) == 1


def test_a_lookup_asks_for_the_key(home: Path) -> None:
    slot = ("lookup", "--op", "rmsnorm", "--gpu", "cpu", "--dtype", "fp32", "--shape", "batch=16,hidden_size=4096")
    rejected_run(home, seal=True)
    vkey = home / "kernel_registry" / "ledger.vkey"
    other = ask("init", home.parent / "other", "--json")
    assert other.status == 0
    assert ask(*slot, "--key", vkey, "--home", home, "--json").document["match"] == "none"
    answer = ask(*slot, "--key", home.parent / "other" / "kernel_registry" / "ledger.vkey", "--home", home)
    assert (answer.status, answer.last) == (1, "try: forge ledger checkpoint")
    shutil.rmtree(home / "keys")
    pointer = (home / "kernel_registry" / "current.json").read_bytes()
    assert ask("ledger", "rebuild", "--home", home).status == 0
    assert (home / "kernel_registry" / "current.json").read_bytes() == pointer, "the note that fits stays"
    go_on(home)
    answer = ask(*slot, "--key", vkey, "--home", home)
    assert "isn't signed" in answer.error
