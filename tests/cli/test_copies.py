"""Backup, restore, export and import from the command line: whole, told apart, refused in one line."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.ledger.audit.history import audit
from tests.app.prepared import benchmarked_run
from tests.candidates import EXAMPLES
from tests.cli.asking import SHAPE, Answer, ask, create_task, files, history, ledger_stands
from tests.cli.test_signing import roll_back
from tests.ledger.forging import forge
from tests.unwritable import obey_modes, unwritable

SLOT = ("--op", "fused_add_rmsnorm", "--gpu", "cpu", "--dtype", "fp32", "--shape", SHAPE)


@pytest.fixture
def promoted(home: Path) -> Path:
    """A workspace with one kernel and one more open run."""
    benchmarked_run(home)
    assert ask("promote", "last", "--home", home).status == 0
    create_task(home)
    return home


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another ledger, on another machine as it were."""
    assert ask("init", tmp_path / "elsewhere").status == 0
    return tmp_path / "elsewhere"


def copy_of(home: Path, target: Path, *options: object) -> Path:
    answer = ask("ledger", "backup", target, "--home", home, *options, "--json")
    assert answer.status == 0, answer.err
    return target


def root(home: Path) -> str:
    return str(ask("ledger", "verify", "--home", home, "--json").document["root"])


def test_a_backup_is_a_workspace_that_stands_by_itself(promoted: Path, tmp_path: Path) -> None:
    backup = copy_of(promoted, tmp_path / "backup")
    assert ledger_stands(backup)
    assert root(backup) == root(promoted)
    assert not (backup / "keys").exists()
    secret = next((promoted / "keys").glob("*.key")).read_text().split("+", 4)[-1].strip().encode()
    assert not any(secret in path.read_bytes() for path in backup.rglob("*") if path.is_file())
    folders = [path.name for path in (promoted / "forge_runs").iterdir() if path.is_dir()]
    kept = {path.name for path in (backup / "forge_runs").iterdir()}
    assert kept | {"briefs"} == {*folders, "cas"}  # copies of briefs aren't kept: a run's folder has its brief
    said = json.loads((backup / "backup.json").read_bytes())
    assert (said["size"], said["with_key"]) == (len(history(promoted)), False)
    assert not (backup / "kernel_registry.db-wal").exists()


def test_a_restored_workspace_goes_on_as_an_epoch_of_its_own(promoted: Path, tmp_path: Path) -> None:
    backup = copy_of(promoted, tmp_path / "backup")
    before = history(promoted)
    one, two = tmp_path / "one", tmp_path / "two"
    answers = [ask("ledger", "restore", backup, home, "--json") for home in (one, two)]
    assert [answer.status for answer in answers] == [0, 0]
    for home, answer in zip((one, two), answers, strict=True):
        assert ledger_stands(home)
        events = history(home)
        assert events[: len(before)] == before
        restored = events[len(before)]
        assert (restored["type"], restored["actor"]) == ("LedgerRestored", "system:recovery")
        assert restored["payload"]["from_size"] == len(before)
        assert restored["payload"]["root_hash"] == root(promoted)
        assert restored["payload"]["epoch"] == answer.document["epoch"]
        assert answer.document["signs"] is False
        found = ask("lookup", *SLOT, "--home", home, "--json").document
        assert found["match"] == "exact"
        assert ask("submit", "last", "examples/honest_cpp", "--home", home).status == 0
    hashes = {history(home)[len(before)]["event_hash"] for home in (one, two)}
    assert len(hashes) == 2, "two continuations can be told apart"


def test_with_its_key_a_restored_ledger_signs_on(promoted: Path, tmp_path: Path) -> None:
    backup = copy_of(promoted, tmp_path / "backup", "--with-key")
    home = tmp_path / "restored"
    done = ask("ledger", "restore", backup, home, "--json").document
    assert done["signs"] is True
    (key,) = (home / "keys").glob("*.key")
    assert key.stat().st_mode & 0o777 == 0o600
    assert [one["type"] for one in history(home)][-2:] == ["LedgerRestored", "CheckpointPublished"]
    kept = promoted / "kernel_registry" / "checkpoint"
    assert ask("ledger", "verify", "--checkpoint", kept, "--home", home).status == 0


def test_a_backup_that_lacks_signed_events_is_refused_unless_the_loss_is_accepted(
    promoted: Path, tmp_path: Path
) -> None:
    backup = copy_of(promoted, tmp_path / "backup")
    assert ask("run", "abort", "last", "--home", promoted).status == 0
    assert ask("ledger", "checkpoint", "--home", promoted).status == 0
    kept = tmp_path / "kept"
    shutil.copy(promoted / "kernel_registry" / "checkpoint", kept)
    for path in promoted.glob("kernel_registry.db*"):
        path.unlink()
    before = files(promoted)
    refused = ask("ledger", "restore", backup, promoted)
    assert (refused.status, refused.last) == (1, "try: forge ledger restore --help")
    assert "would be lost" in refused.error
    assert files(promoted) - {"kernel_registry.db.lock"} == before
    done = ask("ledger", "restore", backup, promoted, "--accept-loss", "--json").document
    assert done["lost_signed_events"] > 0
    assert ledger_stands(promoted)
    against = ask("ledger", "verify", "--checkpoint", kept, "--home", promoted, "--json")
    assert (against.status, against.document["checkpoint"]["verdict"] != "consistent") == (1, True)
    types = [one["type"] for one in history(promoted)]
    assert types[types.index("LedgerRestored") + 1 :][:2] == ["LedgerKeyAdopted", "CheckpointPublished"]
    assert len(list((promoted / "keys").glob("*.retired"))) == 1


def test_a_backup_of_another_continuation_is_refused(promoted: Path, tmp_path: Path) -> None:
    backup = copy_of(promoted, tmp_path / "backup")
    other = tmp_path / "other"
    assert ask("ledger", "restore", backup, other).status == 0
    for _ in range(3):
        create_task(other)
    forked = copy_of(other, tmp_path / "forked")
    assert ask("run", "abort", "last", "--home", promoted).status == 0
    assert ask("ledger", "checkpoint", "--home", promoted).status == 0
    for path in promoted.glob("kernel_registry.db*"):
        path.unlink()
    refused = ask("ledger", "restore", forked, promoted, "--accept-loss")
    assert refused.status == 1
    assert "another continuation" in refused.error


def test_a_backup_with_a_forged_promotion_is_refused_and_nothing_is_made(promoted: Path, tmp_path: Path) -> None:
    backup = copy_of(promoted, tmp_path / "backup")
    (backup / "backup.json").unlink()
    (backup / "kernel_registry.db").chmod(0o644)
    forge(
        backup / "kernel_registry.db",
        lambda _, kind, text: text.replace('"author":"', '"author":"not ') if kind == "KernelPromoted" else text,
    )
    refused = ask("ledger", "restore", backup, tmp_path / "made")
    assert refused.status == 1
    assert "who submitted it" in refused.error
    assert not (tmp_path / "made").exists()


def test_two_copies_that_both_went_on_are_told_apart_by_a_note_of_one(
    home: Path, elsewhere: Path, tmp_path: Path
) -> None:
    """Both have the key, and each is sound; nothing in either of them says that there is another."""
    backup = copy_of(home, tmp_path / "backup", "--with-key")
    for name in ("one", "other"):
        assert ask("ledger", "restore", backup, tmp_path / name).status == 0
        create_task(tmp_path / name)
        assert ask("ledger", "export", tmp_path / f"{name}.bundle", "--home", tmp_path / name).status == 0
        assert ledger_stands(tmp_path / name)
    note = tmp_path / "one" / "kernel_registry" / "checkpoint"
    against = ask("ledger", "verify", "--checkpoint", note, "--home", tmp_path / "other", "--json")
    assert (against.status, against.document["checkpoint"]["verdict"]) == (1, "rewritten")
    assert ask("ledger", "import", tmp_path / "one.bundle", "--home", elsewhere).status == 0
    refused = ask("ledger", "import", tmp_path / "other.bundle", "--home", elsewhere)
    assert refused.status == 1
    assert "another continuation" in refused.error


def test_an_older_copy_that_went_on_past_what_was_signed_opens_nowhere(home: Path, tmp_path: Path) -> None:
    """It is longer than what the key signed, so its length alone doesn't give it away."""
    aside = tmp_path / "aside"
    shutil.copytree(home, aside)
    for _ in range(3):
        create_task(aside)
    create_task(home)
    assert ask("ledger", "checkpoint", "--home", home).status == 0
    for path in home.glob("kernel_registry.db*"):
        path.unlink()
    shutil.copyfile(aside / "kernel_registry.db", home / "kernel_registry.db")
    before = (home / "kernel_registry.db").read_bytes()
    for command in (("run", "list"), ("kernel", "list"), ("ledger", "checkpoint"), ("ledger", "rebuild")):
        refused = ask(*command, "--home", home)
        assert (refused.status, "history was rewritten" in refused.error) == (1, True), command
    assert (home / "kernel_registry.db").read_bytes() == before
    assert ask("ledger", "verify", "--home", home).status == 1


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_no_run_folder_is_copied_from_where_a_link_leads(command: str, home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "private.txt").write_text("for nobody else")
    source = copy_of(home, tmp_path / "backup") if command == "restore" else home
    (run,) = (source / "forge_runs").glob(".tmp-*")
    shutil.rmtree(run)
    run.symlink_to(secret)
    target = tmp_path / "made"
    done = (
        ask("ledger", "restore", source, target)
        if command == "restore"
        else ask("ledger", "backup", target, "--home", home)
    )
    assert done.status == 0, done.err
    assert not list(target.rglob("private.txt"))


def flip(path: Path, place: int) -> None:
    path.chmod(0o644)
    with path.open("r+b") as stream:
        stream.seek(place)
        old = stream.read(1)
        stream.seek(place)
        stream.write(bytes([old[0] ^ 0xFF]))


def _a_blob(folder: Path) -> Path:
    return next(path for path in sorted((folder / "forge_runs" / "cas").glob("*/*")) if path.stat().st_size)


DAMAGE = {
    "not a database": lambda backup: (backup / "kernel_registry.db").write_bytes(b"no database" * 500),
    "another program's": lambda backup: (
        (backup / "kernel_registry.db").unlink(),
        sqlite3.connect(backup / "kernel_registry.db").execute("CREATE TABLE t (x)").connection.close(),
    ),
    "a newer format": lambda backup: _pragma(backup, "PRAGMA user_version = 9"),
    "cut off": lambda backup: os.truncate(backup / "kernel_registry.db", 8192),
    "a blob is gone": lambda backup: shutil.rmtree(backup / "forge_runs" / "cas"),
    "older than it says": lambda backup: roll_back(backup, 3),
    "a manifest of another": lambda backup: (
        (backup / "backup.json").chmod(0o644),
        (backup / "backup.json").write_text("{}"),
    ),
}


def _pragma(backup: Path, sql: str) -> None:
    with closing(sqlite3.connect(backup / "kernel_registry.db")) as connection:
        connection.execute(sql)


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_backup_is_refused_and_nothing_is_made(case: str, home: Path, tmp_path: Path) -> None:
    backup = copy_of(home, tmp_path / "backup")
    DAMAGE[case](backup)
    answer = ask("ledger", "restore", backup, tmp_path / "restored")
    assert answer.status == 1
    assert len(answer.error) > 30
    assert not (tmp_path / "restored").exists()


def test_the_folder_that_a_backup_or_a_note_is_put_into_is_made(home: Path, tmp_path: Path) -> None:
    assert ask("ledger", "backup", tmp_path / "backups" / "monday", "--home", home).status == 0
    assert (tmp_path / "backups" / "monday" / "kernel_registry.db").is_file()
    note = tmp_path / "kept" / "notes" / "checkpoint"
    assert ask("ledger", "checkpoint", "--copy", note, "--home", home).status == 0
    assert note.is_file()


def test_mistakes_with_backups_are_told_in_one_line(home: Path, elsewhere: Path, tmp_path: Path) -> None:
    backup = copy_of(home, tmp_path / "backup")
    before = files(home)
    for command, says in (
        (("backup", backup, "--home", home), "exists"),
        (("backup", backup / "backup.json" / "below", "--home", home), "can't make the folder"),
        (("restore", tmp_path / "nothing", tmp_path / "new"), "no kernel_registry.db"),
        (("restore", backup, elsewhere), "is a workspace already"),
        (("restore", backup, backup / "backup.json"), "can't make a workspace"),
    ):
        answer: Answer = ask("ledger", *command)
        assert (answer.status, says in answer.error) == (2, True), answer
    assert files(home) == before
    assert not (tmp_path / "new").exists()


def test_a_workspace_that_is_not_whole_is_not_backed_up(home: Path, tmp_path: Path) -> None:
    blob = _a_blob(home)
    flip(blob, 0)
    answer = ask("ledger", "backup", tmp_path / "backup", "--home", home)
    assert answer.status == 1
    assert "isn't whole" in answer.error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


APPEND = """
import sys
from pathlib import Path
from forge.app.workspace import Workspace
from tests.ledger.making import duplicated

with Workspace.open(Path(sys.argv[1])) as workspace:
    print("here", flush=True)
    for number in range(2000):
        digest = workspace.blobs.put(b"%d" % number)
        workspace.ledger.append(
            [duplicated(number, candidate=str(number))],
            actor="ci:w",
            correlation_id=digest,
            idempotency_key=f"w{number}",
        )
"""


def test_a_backup_made_while_others_write_is_one_moment(home: Path, tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", APPEND, str(home)], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "here\n"
    stopper = threading.Timer(20, writer.kill)
    stopper.start()
    sizes = []
    for place in range(3):
        backup = copy_of(home, tmp_path / f"backup{place}")
        # the rows alone: readers would refuse what was made up
        assert audit(backup / "kernel_registry.db", runs=backup / "forge_runs").ok
        sizes.append(json.loads((backup / "backup.json").read_bytes())["size"])
    running = writer.poll() is None
    writer.kill()
    writer.communicate()
    stopper.cancel()
    assert running, "the writer had come to its end before the last copy was made"
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_promotion_elsewhere_is_evidence_and_no_kernel_here(
    promoted: Path, elsewhere: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "kernels.bundle"
    made = ask("ledger", "export", bundle, "--home", promoted, "--json").document
    vkey = promoted / "kernel_registry" / "ledger.vkey"
    answer = ask("ledger", "import", bundle, "--key", vkey, "--home", elsewhere, "--json")
    assert answer.status == 0, answer.err
    done = answer.document
    assert (done["new_events"], done["root"]) == (made["size"], made["root"])
    (ledger,) = ask("ledger", "imported", "--home", elsewhere, "--json").document
    (kernel,) = ledger["promotions"]
    there = ask("kernel", "list", "--home", promoted, "--json").document
    assert kernel["kernel_id"] == there[0]["kernel_id"]
    assert kernel["status"] == "promoted"
    assert ask("kernel", "list", "--home", elsewhere, "--json").document == []
    assert ask("lookup", *SLOT, "--home", elsewhere, "--json").document["match"] == "none"
    assert ledger_stands(elsewhere)
    report = ask("ledger", "verify", "--home", elsewhere, "--json").document
    assert report["imported"] == made["size"]
    again = ask("ledger", "import", bundle, "--home", elsewhere, "--json").document
    assert again["new_events"] == 0
    assert "promoted" in ask("ledger", "imported", "--home", elsewhere).out
    backup = copy_of(elsewhere, tmp_path / "backup")
    assert ask("ledger", "verify", "--home", backup, "--json").document["imported"] == made["size"]


def test_mistakes_with_bundles_are_told_in_one_line(home: Path, elsewhere: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "kernels.bundle"
    assert ask("ledger", "export", bundle, "--home", home).status == 0
    size = len(history(home)) - 1
    (tmp_path / "text").write_text("hello")
    cut = tmp_path / "cut.bundle"
    cut.write_bytes(bundle.read_bytes()[:-100])
    wrong = elsewhere / "kernel_registry" / "ledger.vkey"
    before = history(elsewhere), files(elsewhere)
    for command, status, says in (
        (("export", tmp_path, "--home", home), 2, "expected a file's name"),
        (("export", bundle, "--since", size, "--home", home), 2, f"no events after {size}"),
        (("import", tmp_path / "nothing", "--home", elsewhere), 2, "no bundle at"),
        (("import", tmp_path / "text", "--home", elsewhere), 2, "is no bundle"),
        (("import", cut, "--home", elsewhere), 1, "which the file doesn't have"),
        (("import", bundle, "--key", "nonsense", "--home", elsewhere), 2, "can't read"),
        (("import", bundle, "--key", wrong, "--home", elsewhere), 1, "doesn't vouch"),
        (("import", bundle, "--home", home), 2, "of this very ledger"),
    ):
        answer = ask("ledger", *command)
        assert (answer.status, says in answer.error) == (status, True), answer
    assert (history(elsewhere), files(elsewhere) - {"kernel_registry.db.import.lock"}) == before


@pytest.mark.slow
def test_where_nothing_can_be_written_reading_answers_and_writing_says_so(home: Path, tmp_path: Path) -> None:
    def asked(*arguments: object) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "forge", *map(str, arguments), "--home", str(home)]
        return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=obey_modes)

    before = history(home)
    with unwritable(home):
        for reading in (("run", "list"), ("run", "show", "last"), ("kernel", "list"), ("audit", "rejections")):
            answer = asked(*reading)
            assert (answer.returncode, "error" in answer.stderr) == (0, False), answer
        assert asked("ledger", "backup", tmp_path / "copy").returncode == 0
        for writing in (("run", "abort", "last"), ("submit", "last", EXAMPLES / "honest_cpp"), ("ledger", "recover")):
            answer = asked(*writing)
            assert answer.returncode == 1, answer
            assert "opened for reading only: expected a folder that you may write to" in answer.stderr
            assert "Traceback" not in answer.stderr
    assert history(home) == before


def test_an_older_ledger_is_backed_up_after_it_was_brought_up_to_date(tmp_path: Path) -> None:
    home = tmp_path / "old"
    home.mkdir()
    golden = Path(__file__).parents[1] / "ledger" / "golden" / "format-2.db"
    shutil.copy(golden, home / "kernel_registry.db")
    answer = ask("ledger", "backup", tmp_path / "backup", "--home", home)
    assert answer.status == 1
    assert "open it once for writing" in answer.error
    assert (home / "kernel_registry.db").read_bytes() == golden.read_bytes()
    Workspace.open(home).ledger.close()
    with closing(sqlite3.connect(home / "kernel_registry.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
