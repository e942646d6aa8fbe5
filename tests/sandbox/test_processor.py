"""A guest's work ends by what it consumes, and its sleep by its own will; a lack of processors is no end."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from forge.sandbox import processor
from forge.sandbox.allowance import Allowance
from forge.sandbox.ending import Exit
from forge.sandbox.limits import Limits
from forge.sandbox.processor import FEWEST_LOOKS, Consumption, Work
from forge.sandbox.session import exit_reason
from tests.sandbox import confined
from tests.sandbox.confined import SMALL

WORKING = replace(SMALL, wall_s=600.0, thread_cpu_s=1.0, total_cpu_s=3.0, still_s=2.0)
"""Limits that no honest program of this file reaches, however busy the machine is."""
SPINS = "while True: pass"
IN_MANY_THREADS = """
import threading
def spin():
    for _ in range(1000000): pass
while True:
    one = threading.Thread(target=spin)
    one.start()
    one.join()
"""
IN_MANY_PROCESSES = """
import os
while True:
    if os.fork() == 0:
        for _ in range(1000000): pass
        os._exit(0)
    os.wait()
"""
SLEEPS = "import time; time.sleep(3600)"
STOPS_ITSELF = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
WORKS_NOW_AND_THEN = """
import time
for _ in range(8):
    until = time.thread_time() + 0.1
    while time.thread_time() < until: pass
    time.sleep(0.5)
"""


def ended(program: str, limits: Limits = WORKING) -> Exit:
    with confined.launch(program, limits=limits) as guest:
        end = guest.wait(None)
        assert end is not None
        return end


pytestmark = pytest.mark.usefixtures("walls")


@pytest.mark.parametrize(
    ("program", "excess"),
    [(SPINS, "thread"), (IN_MANY_THREADS, "processor"), (IN_MANY_PROCESSES, "processor")],
    ids=["one_thread", "many_threads", "many_processes"],
)
def test_a_guest_that_works_without_end_is_ended_by_its_processor_seconds(program: str, excess: str) -> None:
    end = ended(program)
    assert (end.excess, end.from_load) == (excess, False)


@pytest.mark.parametrize("program", [SLEEPS, STOPS_ITSELF], ids=["sleeps", "stops_itself"])
def test_a_guest_that_wants_no_processor_is_seen_to_sleep(program: str) -> None:
    end = ended(program)
    assert (end.excess, end.from_load) == ("asleep", False)


def test_a_guest_that_may_wait_for_a_device_is_not_held_to_sleep() -> None:
    end = ended(SLEEPS, replace(WORKING, waits_for_device=True))
    assert (end.excess, end.from_load) == ("still", True)


def test_the_wall_clock_alone_decides_nothing() -> None:
    end = ended(SLEEPS, replace(WORKING, wall_s=0.5, still_s=None))
    assert (end.timed_out, end.excess, end.from_load) == (True, None, True)


def test_a_guest_that_works_a_little_is_left_alone() -> None:
    assert ended(WORKS_NOW_AND_THEN, replace(WORKING, still_s=1.0)).returncode == 0


@contextmanager
def load(count: int) -> Iterator[None]:
    """As many programs that want a processor all the time."""
    running = [subprocess.Popen([sys.executable, "-S", "-c", SPINS]) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def test_a_guest_beside_a_load_of_four_times_the_cores_is_left_alone() -> None:
    """By the wall clock it takes five times as long as its processor seconds allow."""
    program = "import time\nwhile time.thread_time() < 0.8: pass"
    with load(4 * (os.cpu_count() or 1)):
        end = ended(program, replace(WORKING, still_s=1.0))
    assert end.returncode == 0, end


def test_guests_of_one_candidate_share_their_processor_seconds() -> None:
    """Each stays below its own limits; the second one finds too little left."""
    together = replace(WORKING, shared=Allowance(0.8, wall_s=600.0))
    first = ended("import time\nwhile time.thread_time() < 0.6: pass", together)
    assert (first.returncode, first.excess) == (0, None)
    second = ended(SPINS, together)
    assert second.excess == "together"
    assert not second.from_load
    assert exit_reason(second, together).message.startswith("the guests of the candidate used up their 0.8 s")


def test_waiting_too_long_for_all_guests_is_no_verdict() -> None:
    waiting = replace(WORKING, still_s=None, shared=Allowance(600.0, wall_s=0.5))
    end = ended(SLEEPS, waiting)
    assert end.excess == "waited"
    assert end.from_load
    assert "the machine may be the reason" in exit_reason(end, waiting).message


def test_a_resting_guest_is_not_held_to_sleep() -> None:
    with confined.launch(SLEEPS, limits=WORKING) as guest:
        guest.rest()
        assert guest.wait(2 * (WORKING.still_s or 0)) is None


def looked(states: list[str], *, ran_s: float = 0.0, limits: Limits = WORKING) -> list[str | None]:
    """What a watch says of a tree whose threads are in these states, four times a second."""
    readings = iter(
        Consumption(place * ran_s, {"1/1": place * ran_s}, frozenset({state.encode()}))
        for place, state in enumerate(states)
    )
    work = Work(1, limits)
    return [work._standing(next(readings), place / 4) for place in range(len(states))]


def test_a_thread_that_gets_no_processor_is_the_machines_doing() -> None:
    assert set(looked(["R"] * 100)) == {None}
    assert set(looked((["S"] * 9 + ["R"]) * 10)) == {None}


def test_a_thread_that_waits_for_a_disk_is_no_verdict() -> None:
    assert "still" in looked(["D"] * 40)
    assert "asleep" not in looked(["D"] * 40)


def test_a_host_that_seldom_looks_waits_longer() -> None:
    said = looked(["S"] * FEWEST_LOOKS, limits=replace(WORKING, still_s=0.5))
    assert said == [*[None] * (FEWEST_LOOKS - 1), "asleep"]


def test_a_system_that_shows_no_threads_leaves_the_end_to_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "descendants", lambda _: set())
    work = Work(1, replace(WORKING, total_cpu_s=1e-9, still_s=1e-9))
    assert work.look() is None
