"""A policy, a ledger, a blob or a disk that isn't what it was: said in one line, and nothing made worse."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.app.prepared import benchmarked_run
from tests.cli.asking import HONEST, SHAPE, ask, files, history, ledger_stands
from tests.full_disk import refuse
from tests.ledger.making import edit_as_owner

TASK = {
    "--op": "fused_add_rmsnorm",
    "--language": "cpp",
    "--gpu": "cpu",
    "--dtype": "fp32",
    "--shape": SHAPE,
}
BAD_POLICIES = {
    "not toml": ("rounds = = 4", "TOML"),
    "unknown field": ("trust = 1", "trust: got 1, expected no field but minimum_speedup, minimum_isolation,"),
    "out of range": ("rounds = 1", "rounds: got 1, expected at least 4;"),
    "another type": ('rounds = "many"', "rounds: got 'many', expected a whole number;"),
    "nan": ("minimum_speedup = nan", "minimum_speedup: got nan, expected a finite number;"),
    "infinity": ("memory_limit_bytes = inf", "memory_limit_bytes: got inf, expected a whole number;"),
    "speedup below one": ("minimum_speedup = 0.5", "minimum_speedup: got 0.5, expected at least 1.0;"),
    "no baseline": ("baselines = []", "baselines: got (), expected at least 1 of them;"),
    "unknown baseline": (
        'baselines = ["mine"]',
        "baselines.0: got 'mine', expected 'eager', 'compile', 'vendor' or 'contenders';",
    ),
    "unknown wall": (
        'minimum_isolation = "hope"',
        "minimum_isolation: got 'hope', expected 'none', 'bubblewrap' or 'namespaces';",
    ),
    "more memory than there is": (
        "memory_limit_bytes = 99999999999999999999",
        "memory_limit_bytes: got 99999999999999999999, expected at most 17592186044416;",
    ),
    "a number as text": ('rounds = "12"', "rounds: got '12', expected a whole number;"),
    "no as text": ('sanitizer = "no"', "sanitizer: got 'no', expected true or false;"),
    "true as a number": ("floor_slack = true", "floor_slack: got True, expected a number;"),
    "no control": ('baselines = ["compile"]', "baselines: got ['compile'], expected 'eager' among them"),
    "not utf-8": ("\udcff = 1", "TOML"),
    "a number of thousands of digits": (f"rounds = {'1' * 5000}", "TOML"),
    "nested too deeply": (f"rounds = {'[' * 10_000}", "TOML"),
}


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_a_policy_that_does_not_hold_stops_every_command_that_opens_the_workspace(case: str, home: Path) -> None:
    text, value = BAD_POLICIES[case]
    (home / "policy.toml").write_bytes(text.encode(errors="surrogateescape"))
    for command in (("run", "list"), ("verify", "last"), ("task", "create", *[p for o in TASK.items() for p in o])):
        answer = ask(*command, "--home", home)
        assert answer.status == 2
        assert "policy.toml" in answer.error
        assert value in answer.error
    assert ledger_stands(home)  # that and a lookup don't ask it
    slot = [part for option, value in TASK.items() if option != "--language" for part in (option, value)]
    assert ask("lookup", *slot, "--home", home, "--json").document["match"] == "none"


def test_a_policy_that_changed_since_the_task_denies_the_promotion(home: Path) -> None:
    run_id = benchmarked_run(home)
    (home / "policy.toml").write_text("minimum_speedup = 1.0\n")
    answer = ask("promote", "last", "--home", home, "--json")
    assert answer.status == 1
    assert answer.document["verdict"] == "rejected"
    assert answer.document["reason"]["code"] == "STATIC_POLICY"
    assert answer.last == f"try: forge run show {run_id}"
    assert ask("run", "check", "last", "--home", home).status == 0


def _sql(home: Path, text: str) -> None:
    with closing(sqlite3.connect(home / "kernel_registry.db")) as connection:
        connection.executescript(text)


def _edit(sql: str) -> Callable[[Path], None]:
    return lambda home: edit_as_owner(home / "kernel_registry.db", sql)


def _truncate(home: Path) -> None:
    database = home / "kernel_registry.db"
    with database.open("r+b") as file:
        file.truncate(database.stat().st_size // 2)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a row edited": _edit("UPDATE event SET actor = 'cli:eve@lab' WHERE type = 'TaskCreated'"),
    "a text of other bytes": _edit("UPDATE event SET payload = CAST(x'7bff7d' AS TEXT) WHERE type = 'TaskCreated'"),
    "a row taken out": _edit("DELETE FROM event WHERE seq = 3"),
    "a trigger dropped": lambda home: _sql(home, "DROP TRIGGER event_refuses_update"),
    "half of the file": _truncate,
    "not a database": lambda home: (home / "kernel_registry.db").write_bytes(b"not a database" * 1000),
    "an empty file": lambda home: (home / "kernel_registry.db").write_bytes(b""),
    "another database": lambda home: (
        (home / "kernel_registry.db").unlink(),
        _sql(home, "CREATE TABLE event (seq INTEGER)"),
    ),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_ledger_is_named_and_never_written_to(case: str, home: Path) -> None:
    DAMAGES[case](home)
    damaged = (home / "kernel_registry.db").read_bytes()
    report = ask("ledger", "verify", "--home", home, "--json")
    assert report.status == 1
    assert report.document["ok"] is False
    assert report.document["problems"]
    for command in (("submit", "last", HONEST), ("run", "list"), ("ledger", "log"), ("ledger", "rebuild")):
        answer = ask(*command, "--home", home, "--json")
        assert answer.status == 1, command
        assert answer.document.keys() == {"error"}
        assert "kernel_registry.db" in answer.error
        assert answer.last == "try: forge ledger verify"
    assert (home / "kernel_registry.db").read_bytes() == damaged


def _blobs(home: Path) -> list[Path]:
    return sorted(path for path in (home / "forge_runs" / "cas").rglob("*") if path.is_file())


@pytest.mark.parametrize("damage", ["deleted", "edited", "link"])
def test_a_blob_that_is_not_what_its_name_says_stops_who_needs_it(damage: str, home: Path) -> None:
    ask("submit", "last", HONEST, "--home", home)
    digest = {one["path"]: one["sha256"] for one in history(home)[-1]["payload"]["files"]["files"]}["kernel.py"]
    blob = home / "forge_runs" / "cas" / digest[:2] / digest
    content = blob.read_bytes()
    blob.unlink()
    if damage == "edited":
        blob.write_bytes(content.replace(b"1.0f", b"2.0f"))
    elif damage == "link":
        blob.symlink_to(HONEST / "kernel.py")
    events = history(home)
    answer = ask("verify", "last", "--home", home, "--json")
    assert answer.status == 1
    assert answer.document.keys() == {"error"}
    assert digest in answer.error
    assert "restore it from a backup" in answer.error
    assert answer.last == "try: forge ledger verify"
    assert [one for one in history(home) if one["type"] != "EnvironmentCaptured"] == events
    report = ask("ledger", "verify", "--home", home, "--json")
    assert report.status == 1
    assert digest in report.out


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from forge.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("name", "limit_bytes"), [("submit", 1000), ("submit", 20_000), ("promote", 1000), ("task", 5000), ("init", 4096)]
)
def test_a_full_disk_is_said_and_leaves_the_ledger_as_it_was(name: str, limit_bytes: int, home: Path) -> None:
    if name == "promote":
        benchmarked_run(home)
    commands: dict[str, tuple[object, ...]] = {
        "submit": ("submit", "last", HONEST, "--home", home),
        "promote": ("promote", "last", "--home", home),
        "task": ("task", "create", *[part for option in TASK.items() for part in option], "--home", home),
        "init": ("init", home / "new"),
    }
    events = history(home)
    before = files(home)
    command = [sys.executable, "-c", LIMITED, str(limit_bytes), *map(str, commands[name])]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1, answer
    assert "Traceback" not in answer.stderr
    errors = [line for line in answer.stderr.splitlines() if line.startswith("error[")]
    assert len(errors) == 1, answer.stderr
    assert "free space" in errors[0]
    assert ledger_stands(home)
    assert history(home)[: len(events)] == events
    if name != "task":
        assert history(home) == events
    stray = {path for path in files(home) - before if ".part-" in path or ".publishing-" in path}
    assert stray == set()
    if name == "init":
        assert not (home / "new" / "kernel_registry.db").exists()
        assert list((home / "new" / "keys").iterdir()) == [], "a key of no ledger was left"
        assert "no ledger was made" in errors[0]
    again = ask(*commands[name])
    assert again.status == 0, "the same command works once there is room"
    assert ledger_stands(home)


@pytest.mark.parametrize("what", ["history.db", "run folder", "published files"])
def test_a_task_that_was_recorded_is_not_said_to_be_unwritten(
    what: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("task", "create", *[part for option in TASK.items() for part in option], "--home", home)
    before = len(history(home))
    with monkeypatch.context() as disk:
        refuse(disk, what)
        answer = ask(*command)
    recorded = len(history(home))
    assert answer.status == 1
    assert recorded > before
    assert "nothing was written" not in answer.error
    assert f"up to event {recorded}" in answer.error
    assert "free space" in answer.error
    assert answer.last in ("try: forge run list", "try: forge ledger rebuild")
    assert ledger_stands(home)
