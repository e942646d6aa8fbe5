"""Asks the command line as a person would, in this process, and holds it to what every answer must be."""

import contextlib
import fcntl
import io
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forge.__main__ import main

EXAMPLES = Path(__file__).parents[2] / "examples"
HONEST = EXAMPLES / "honest_cpp"
SHAPE = "batch=16,hidden_size=4096"
IN_A_HOME = re.compile(r" --home (\S+|'[^']*')$")
QUICK_POLICY = """
process_pairs = 2
rounds = 4
baselines = ["eager"]
regimes = ["cold"]
control_half_width = 0.5
minimum_speedup = 1.0
"""


@dataclass(frozen=True)
class Answer:
    """What one command said."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def last(self) -> str:
        """The last line on stderr, without the workspace that was asked (test_streams.py): what to do next."""
        return IN_A_HOME.sub("", self.err.strip().splitlines()[-1]) if self.err.strip() else ""

    @property
    def error(self) -> str:
        """The one line that says what is wrong."""
        errors = [line for line in self.err.splitlines() if line.startswith("error[")]
        assert len(errors) == 1, self.err
        return errors[0]


def task_of(home: Path) -> str:
    """The id of the oldest task."""
    return str(ask("task", "list", "--home", home, "--json").document[0]["task_id"])


def ask(*arguments: object) -> Answer:
    """Run one command; anything that leaves it but an exit status fails the test."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["forge", *map(str, arguments)]
    status = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as left:
                status = left.code if isinstance(left.code, int) else 1
    finally:
        sys.argv = before
    answer = Answer(status, out.getvalue(), err.getvalue())
    check_manners(answer, as_json="--json" in arguments)
    return answer


def check_manners(answer: Answer, *, as_json: bool) -> None:
    """What holds for every command: a status that means something, no traceback, data on stdout only."""
    assert answer.status in (0, 1, 2, 3), answer
    assert "Traceback" not in answer.err + answer.out
    if as_json and answer.out:
        assert answer.document is not None or answer.out == "null\n"
    if as_json and answer.status == 0:
        assert answer.out, "no document"
    if answer.status == 1:
        assert answer.last.startswith("try: forge "), answer.err
    if answer.status in (2, 3):
        assert answer.out == "" if not as_json else answer.document["error"]["exit_status"] == answer.status
        assert len(answer.error) > len("error[]: ")


def create_task(home: Path, *extra: object, language: str = "cpp", gpu: str = "cpu") -> dict[str, str]:
    """A task and its first run."""
    found: dict[str, str] = ask(
        *("task", "create", "--home", home, "--op", "fused_add_rmsnorm", "--language", language, "--gpu", gpu),
        *("--dtype", "fp32", "--shape", SHAPE, "--json", *extra),
    ).document
    return found


def history(home: Path) -> list[dict[str, Any]]:
    """Every event, as `ledger log` shows it."""
    events: list[dict[str, Any]] = ask("ledger", "log", "--home", home, "--json").document
    return events


def ledger_stands(home: Path) -> bool:
    """Whether the audit finds nothing."""
    report = ask("ledger", "verify", "--home", home, "--json")
    assert report.status == (0 if report.document["ok"] else 1)
    return bool(report.document["ok"])


def files(home: Path) -> set[str]:
    """Every file of a workspace, but for blobs and what SQLite keeps beside the database."""
    found = (path.relative_to(home).as_posix() for path in home.rglob("*") if not path.is_dir() or path.is_symlink())
    return {name for name in found if not name.startswith(("forge_runs/cas/", "kernel_registry.db-"))}


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """A folder that the first worker builds and the others find; to be copied, never changed."""
    root = factory.getbasetemp()
    root = root.parent if root.name.startswith("popen-") else root
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder, done = root / name, root / f"{name}.done"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
            done.touch()
    return folder


def copied(source: Path, target: Path) -> Path:
    """A workspace of the test's own."""
    return Path(shutil.copytree(source, target, symlinks=True))
