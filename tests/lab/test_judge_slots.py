"""A machine has as many slots as processors, for all processes of Forge together."""

import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from forge.lab import judge_slots
from forge.lab.judge_slots import slot
from forge.sandbox import calling_off

COUNT = 2
HOLDS = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from forge.lab import judge_slots
judge_slots.processors = lambda: 2
with judge_slots.slot(lambda: True):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def slots_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two slots in a folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(judge_slots, "processors", lambda: COUNT)


def test_one_more_than_there_are_waits_for_another_to_end() -> None:
    got, wanted = threading.Event(), threading.Event()
    wanted.set()

    def wait() -> None:
        with slot(wanted.is_set) as held:
            assert held
            got.set()

    with ExitStack() as holding:
        for _ in range(COUNT):
            assert holding.enter_context(slot(lambda: True))
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not got.wait(4 * judge_slots.POLL_S)
    waiting.join(20)
    assert got.is_set()


def test_one_that_is_not_wanted_any_more_gets_none() -> None:
    with slot(lambda: True), slot(lambda: True), slot(lambda: False) as held:
        assert not held


def test_work_that_is_called_off_waits_no_more() -> None:
    calling_off.call_off()
    try:
        with slot(lambda: True), slot(lambda: True), pytest.raises(calling_off.CalledOff), slot(lambda: True):
            pytest.fail("it was called off")
    finally:
        calling_off.resume()


def test_other_processes_hold_slots_too(tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with slot(lambda: True), slot(lambda: False) as held:
        assert not held
    other.kill()  # a process that dies gives its slot back
    other.wait()
    other.stdin.close()
    other.stdout.close()
    with slot(lambda: True), slot(lambda: False) as held:
        assert held
