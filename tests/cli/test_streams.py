"""The command line with a home that isn't the usual one, with closed streams, and when it is interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forge.cli.output import WIDEST_CELL, emit_table
from forge.cli.suggest import after_interruption, at_home
from tests.cli.asking import built_once, copied

FORGE = [sys.executable, "-m", "forge"]


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new workspace, made by a real process; to be copied, never changed."""

    def build(folder: Path) -> None:
        subprocess.run([*FORGE, "init", str(folder)], check=True, capture_output=True)

    return built_once(tmp_path_factory, "with a blank é", build)


@pytest.fixture
def home(initialised: Path, tmp_path: Path) -> Path:
    return copied(initialised, tmp_path / "with a blank é")


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        ("forge kernel list", ("kernel", "show", "x", "--home", "/a b"), "forge kernel list --home '/a b'"),
        ("forge kernel list", ("--home=/a",), "forge kernel list --home /a"),
        ("forge ledger prove k", ("--home", "/a"), "forge ledger prove k --home /a"),
        ("forge kernel list", (), "forge kernel list"),
        ("forge kernel list", ("--home",), "forge kernel list"),
        ("forge kernel list --home /b", ("--home", "/a"), "forge kernel list --home /b"),
        ("forge skill list", ("--home", "/a"), "forge skill list"),
        ("forge init /a", ("--home", "/a"), "forge init /a"),
        ("forge task create --help", ("--home", "/a"), "forge task create --help"),
        ("dmesg | grep Xid; forge doctor", ("--home", "/a"), "dmesg | grep Xid; forge doctor"),
    ],
)
def test_a_suggestion_keeps_the_workspace_that_was_named(command: str, given: tuple[str, ...], expected: str) -> None:
    assert at_home(command, given) == expected


def test_what_an_error_suggests_runs_in_the_same_workspace(home: Path) -> None:
    command = [*FORGE, "kernel", "show", "nope", "--home", str(home)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == f"try: forge run list --home '{home}'"


def test_a_table_that_is_read_by_a_program_keeps_ids_in_one_piece(home: Path) -> None:
    command = [*FORGE, "task", "create", "--op", "softmax", "--language", "cpp", "--gpu", "cpu", "--dtype", "fp32"]
    command += ["--shape", "batch=16,hidden_size=64", "--home", str(home)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    made = subprocess.run([*FORGE, "task", "list", "--json", "--home", str(home)], capture_output=True, check=True)
    (task,) = json.loads(made.stdout)
    assert task["task_id"] in told


def test_a_document_in_a_cell_is_folded_and_pads_no_other_row(capsys: pytest.CaptureFixture[str]) -> None:
    emit_table("", ("name", "holds"), [("document", "x" * 5000), ("path", "/a" * 100)])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 2 * WIDEST_CELL
    assert sum(line.count("x") for line in lines) == 5000
    assert any("/a" * 100 in line for line in lines)


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_stream_is_no_error(home: Path, closed: str) -> None:
    redirected = {"stdout": ">&-", "stderr": "2>&-"}[closed]
    line = f'exec "$@" {redirected}'
    command = ["sh", "-c", line, "sh", *FORGE, "kernel", "list", "--home", str(home)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("command", [("run", "list"), ("task", "list", "--json"), ("--version",)], ids=" ".join)
def test_an_answer_that_cannot_be_written_is_told_with_what_to_do_next(home: Path, command: tuple[str, ...]) -> None:
    at = () if command == ("--version",) else ("--home", str(home))
    with open("/dev/full", "w") as full:
        answer = subprocess.run([*FORGE, *command, *at], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert answer.returncode == 3
    error, hint = answer.stderr.splitlines()
    assert "No space left on device; what was acknowledged is recorded" in error
    assert hint.startswith("try: forge run list")


def test_a_stream_that_cant_hold_a_letter_gets_its_escape(home: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [*FORGE, "lookup", "--op", "softmax", "--gpu", "cpu", "--dtype", "fp32", "--shape"]
    command += ["batch=1,hidden_size=1", "--home", str(home)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert answer.returncode == 1, answer.stderr
    assert r"with a blank \xe9" in answer.stderr


def _heed_interrupts() -> None:
    """A shell has what it runs in the background ignore them, which is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(sys.platform != "linux", reason="whether a process has begun its work is read in /proc")
def test_an_interrupted_command_says_so(home: Path) -> None:
    command = [*FORGE, "audit", "sql", "--home", str(home)]
    command += ["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, preexec_fn=_heed_interrupts) as running:
        deadline = time.monotonic() + 60
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")  # who answers the question
        while not children.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert said.startswith("interrupted; what was recorded stays")


@pytest.mark.parametrize(
    ("arguments", "following"),
    [
        ("verify r3", "forge run show r3"),
        ("bench last-2 --attempts 3", "forge run show last-2"),
        ("submit 20260101T120000_rmsnorm_cpu_1f00aa my", "forge run show 20260101T120000_rmsnorm_cpu_1f00aa"),
        ("verify --again r3", "forge run list"),
        ("bench triton_rmsnorm_h200_bf16_b16_h4096_v1 --replicate", "forge run list"),
        ("verify", "forge run list"),
        ("check a.py b.py", "forge check --help"),
        ("ledger verify --full", "forge ledger verify --help"),
    ],
)
def test_an_interrupted_command_names_its_own_run(arguments: str, following: str) -> None:
    assert after_interruption(arguments.split())[1] == following


@pytest.mark.parametrize(
    ("module", "arguments"), [("typer", ["plan", "last"]), ("typer", []), ("sqlite3", ["run", "list"])]
)
def test_an_interruption_while_packages_are_loaded_is_told_without_a_traceback(
    module: str, arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt\n")
    command = [sys.executable, "-m", "forge", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 130
    assert ended.stderr.startswith("interrupted; ")
    assert "Traceback" not in ended.stderr
