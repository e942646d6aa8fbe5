"""A process that asks beside others answers, raises and ends as a call in this process would."""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forge.errors import EnvironmentUnfit
from forge.lab.judge_processes import JudgeProcess, JudgeServer
from forge.sandbox import calling_off
from forge.sandbox.zygote import Zygote

WAIT_S = 20.0
SLEEP_S = 300.0


SERVER = JudgeServer("tests.lab.test_judge_processes", "answers")
atexit.register(SERVER.close)


def answers(requests: Iterator[bytes], zygote: Zygote | None) -> Iterator[bytes]:
    """What the processes of these tests do."""
    noted = ""
    for request in requests:
        word, _, rest = request.decode().partition(" ")
        match word:
            case "note":
                noted = rest
            case "noted":
                yield noted.encode()
            case "repeat":
                yield f"{os.getpid()} {zygote is None} {rest}".encode()
            case "sleep":
                sleep(Path(rest))
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                raise ValueError(word)


def sleep(note: Path) -> None:
    note.write_text(str(os.getpid()))
    try:
        time.sleep(SLEEP_S)
    finally:
        note.unlink()


def started() -> JudgeProcess:
    return JudgeProcess(SERVER, None)


def wait_for(note: Path, *, there: bool) -> None:
    until = time.monotonic() + WAIT_S
    while note.exists() != there or (there and not note.read_text()):
        assert time.monotonic() < until, note
        time.sleep(0.02)


@contextmanager
def sleeping(tmp_path: Path) -> Iterator[tuple[JudgeProcess, Path]]:
    note = tmp_path / "pid"
    with started() as process:
        process.tell(f"sleep {note}".encode())
        wait_for(note, there=True)
        yield process, note


def test_each_answers_all_requests_from_another_process() -> None:
    words, found = ("a", "b" * 2**20), []
    for _ in range(2):
        with started() as process:
            found += [process.ask(f"repeat {word}".encode()).decode().split() for word in words]
    assert [(alone, word) for _, alone, word in found] == [("True", word) for word in words] * 2
    assert len({str(os.getpid()), *(pid for pid, _, _ in found)}) == 3


def test_requests_that_come_at_once_are_taken_one_by_one() -> None:
    with started() as process:
        process.tell(b"note " + b"a" * 2**20)
        process.tell(b"note b")
        assert process.ask(b"noted") == b"b"


def test_a_fault_of_its_own_is_no_answer_and_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    server = JudgeServer("tests.lab.test_judge_processes", "answers")  # what it says goes where this test's words go
    with JudgeProcess(server, None) as process, pytest.raises(EnvironmentUnfit, match="without an answer"):
        process.ask(b"fail")
    server.close()
    assert "ValueError: fail" in capfd.readouterr().err


def test_one_whose_answer_is_not_wanted_ends_at_once_and_cleans_up(tmp_path: Path) -> None:
    with sleeping(tmp_path) as (process, note):
        process.end()
        with pytest.raises(EnvironmentUnfit, match="ended without an answer"):
            process.ask(b"repeat a")
        assert not note.exists()


def test_work_that_is_called_off_ends_it(tmp_path: Path) -> None:
    with sleeping(tmp_path) as (process, note):
        calling_off.call_off()
        try:
            with pytest.raises(EnvironmentUnfit):
                process.ask(b"repeat a")
            with pytest.raises(calling_off.CalledOff):
                started()
        finally:
            calling_off.resume()
    assert not note.exists()


def test_one_that_is_killed_is_no_verdict() -> None:
    with started() as process, pytest.raises(EnvironmentUnfit, match="ended without an answer"):
        process.ask(b"die")


def test_a_server_that_is_gone_is_replaced() -> None:
    SERVER.start()
    before = SERVER.pid
    os.kill(before, signal.SIGKILL)
    os.waitid(os.P_PID, before, os.WEXITED | os.WNOWAIT)
    with started() as process:
        assert process.ask(b"repeat again").endswith(b" again")
    assert SERVER.pid != before


PROGRAM = """
import sys
from tests.lab.test_judge_processes import started
with started() as process:
    process.ask(f"sleep {sys.argv[1]}".encode())
"""


def test_it_ends_with_the_process_that_asked(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    root = str(Path(__file__).parents[2])
    caller = subprocess.Popen([sys.executable, "-c", PROGRAM, str(note)], cwd=root)
    try:
        wait_for(note, there=True)
        pid = int(note.read_text())
    finally:
        caller.kill()
        caller.wait()
    wait_for(note, there=False)
    until = time.monotonic() + WAIT_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.kill(pid, 0)
            time.sleep(0.02)
        pytest.fail(f"process {pid} is still there")
