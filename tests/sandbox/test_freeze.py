"""Between releases a guest stands still, with everything it started."""

import errno
import mmap
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forge.sandbox import freeze
from forge.sandbox.freeze import Ran, Waited, longest_wait_ns, moved, undelayed_ns
from forge.sandbox.isolation import Level
from forge.sandbox.launch import Confinement, Limits, masked_paths, runtime_binds, start

COUNTS = """
import mmap, os, struct, threading, time
memory = mmap.mmap(3, 4096)
def count(at):
    number = 0
    while True:
        number += 1
        struct.pack_into("Q", memory, at, number)
threading.Thread(target=count, args=(8,), daemon=True).start()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        count(16)
    os._exit(0)
count(0)
"""

CROWD = """
import hashlib, os, threading, time
def work():
    while True:
        hashlib.sha256(b"x" * 20000).digest()
def doze():
    while True:
        time.sleep(0.0002)
def breed():
    while True:
        threading.Thread(target=int).start()
for task in (work, work, doze, doze, breed):
    threading.Thread(target=task, daemon=True).start()
if os.fork() == 0:
    work()
work()
"""
RESTLESS = """
import hashlib, time
while True:
    hashlib.sha256(b"x" * 100000).digest()
    time.sleep(0.0001)
"""


BREEDS = """
import os
while True:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
"""

WAITS_AND_WORKS = """
import ctypes, mmap, os, threading, time
memory = mmap.mmap(3, 4096)
os.mkfifo("pipe")
def wait_for_go():
    while not memory[0]:
        time.sleep(0.0005)
def wait_for_a_spawned_process():
    wait_for_go()
    libc, actions = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    libc.posix_spawn_file_actions_init(actions)
    libc.posix_spawn_file_actions_addopen(actions, 9, b"pipe", os.O_RDONLY, 0)
    words = (ctypes.c_char_p * 2)(b"true", None)
    libc.posix_spawn(ctypes.byref(ctypes.c_int()), b"/bin/true", actions, None, words, None)
threading.Thread(target=wait_for_a_spawned_process, daemon=True).start()
wait_for_go()
time.sleep(0.05)
if os.fork() == 0:
    memory[1] = 1
    until = time.process_time() + 0.8  # a busy host stops it before, and waits longer than this for the stop
    while time.process_time() < until:
        pass
    memory[2] = 1
    os.open("pipe", os.O_WRONLY)
    os._exit(0)
time.sleep(600)
"""


def confined(program: str, *descriptors: int) -> Confinement:
    """A program that may take ten minutes."""
    return Confinement(
        argv=(sys.executable, "-I", "-S", "-c", program),
        binds=runtime_binds(),
        masked=masked_paths(),
        environment={},
        descriptors=descriptors,
        limits=Limits(wall_s=600),
    )


@contextmanager
def sharing(program: str, folder: Path) -> Iterator[tuple[Confinement, mmap.mmap]]:
    """A program, and a page that it shares with the test."""
    with (folder / "shared").open("w+b") as file:
        os.ftruncate(file.fileno(), 4096)
        with mmap.mmap(file.fileno(), 4096) as memory:
            yield confined(program, file.fileno()), memory


def counters(memory: mmap.mmap) -> tuple[int, ...]:
    return struct.unpack_from("3Q", memory, 0)


def within(seconds: float, happens: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happens():
            return True
        time.sleep(0.01)
    return False


def all_move(memory: mmap.mmap, before: tuple[int, ...]) -> bool:
    return within(60, lambda: all(now != then for now, then in zip(counters(memory), before, strict=True)))


def test_threads_children_and_orphans_stand_still_until_they_are_let_go(walled: Level, tmp_path: Path) -> None:
    with sharing(COUNTS, tmp_path) as (confinement, memory), start(confinement, isolation=walled) as guest:
        assert all_move(memory, (0, 0, 0))
        for _ in range(3):
            assert guest.freeze()
            stopped = counters(memory)
            time.sleep(0.05)
            assert counters(memory) == stopped
            guest.thaw()
            assert all_move(memory, stopped)


def test_a_stopped_guest_is_killed_with_everything_it_started(walled: Level, tmp_path: Path) -> None:
    with sharing(COUNTS, tmp_path) as (confinement, memory):
        with start(confinement, isolation=walled) as guest:
            assert all_move(memory, (0, 0, 0))
            assert guest.freeze()
            stopped = counters(memory)
            guest.kill()
        time.sleep(0.05)
        assert counters(memory) == stopped
        assert guest.freeze()


def test_a_thread_that_cant_be_stopped_wins_no_time_for_a_new_process(
    walled: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread in vfork doesn't stop before its child has ended; another new process could work meanwhile."""
    monkeypatch.setattr(freeze, "_PATIENCE_S", 1.0)
    with sharing(WAITS_AND_WORKS, tmp_path) as (confinement, memory), start(confinement, isolation=walled) as guest:
        time.sleep(0.5)
        assert guest.freeze()
        guest.thaw()
        memory[0] = 1
        assert within(60, lambda: memory[1] == 1)
        assert not guest.freeze()
        assert memory[2] == 0, "the new process ended its work after the stop began"


def test_processes_that_have_ended_are_held_no_longer(walled: Level) -> None:
    with start(confined(BREEDS), isolation=walled) as guest:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(40):
            assert guest.freeze()
            held = len(os.listdir("/proc/self/fd")) - before
            guest.thaw()
            time.sleep(0.01)
    assert held <= 10, "the parent, and some of the forty children or more"


@pytest.mark.parametrize("queue_info_s", [0.0, 0.25])
def test_an_honest_crowd_on_a_busy_machine_is_never_said_to_have_moved(
    walled: Level, monkeypatch: pytest.MonkeyPatch, queue_info_s: float
) -> None:
    monkeypatch.setattr(freeze, "_QUEUE_INFO_S", queue_info_s)
    rivals = [subprocess.Popen([sys.executable, "-I", "-S", "-c", RESTLESS]) for _ in range(4)]
    try:
        with start(confined(CROWD), isolation=walled) as guest:
            time.sleep(0.2)
            for _ in range(25):
                assert guest.freeze()
                time.sleep(0.01)
                assert guest.moved() == ""
                guest.thaw()
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()


@pytest.mark.parametrize("left", [freeze._off_queue, freeze._off_processor])
def test_a_thread_that_sleeps_has_left_and_one_that_runs_has_not(left: Callable[[str], bool]) -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"]) as sleeper:
        try:
            assert within(60, lambda: left(f"/proc/{sleeper.pid}/task/{sleeper.pid}"))
        finally:
            sleeper.kill()
    # whoever reads it runs, which no other can be sure of on a busy machine; an old thread's counts may be one apart
    reads = f"from forge.sandbox import freeze; print(freeze.{left.__name__}('/proc/thread-self'))"
    assert subprocess.check_output([sys.executable, "-c", reads], text=True) == "False\n"


@pytest.mark.parametrize(
    ("now", "ran"),
    [
        ({"7": (500, 3)}, ""),
        ({}, ""),
        ({"7": (501, 3)}, "1 ns in 0 turns"),
        ({"7": (500, 4)}, "0 ns in 1 turns"),
        ({"7": (500, 3), "8": (0, 1)}, "0 ns in 1 turns"),
        ({"7": (600, 4), "8": (9, 1)}, "100 ns in 1 turns, 9 ns in 1 turns"),
    ],
)
def test_a_thread_that_ran_at_all_has_moved(now: Ran, ran: str) -> None:
    assert moved({"7": (500, 3)}, now) == ran


@pytest.mark.parametrize(
    ("now", "undelayed"),
    [
        ({"7": (300, 20)}, 1000),
        ({"7": (300, 620)}, 400),
        ({"7": (300, 220), "8": (500, 400)}, 500),  # both waited at once: the sum is more than was lost
        ({"7": (900, 920), "8": (90, 90)}, 800),
        ({}, 1000),
    ],
)
def test_waiting_for_a_processor_is_no_time_of_the_guests(now: Waited, undelayed: int) -> None:
    assert undelayed_ns(1000, {"7": (100, 20), "9": (5, 5)}, now) == undelayed


@pytest.mark.parametrize(
    ("now", "longest"),
    [
        ({"7": (100, 20)}, 0),
        ({"7": (100, 320), "9": (5, 105)}, 300),  # both waited at the same time
        ({"9": (5, 105)}, 100),
        ({}, 0),
    ],
)
def test_a_stop_waits_as_long_as_the_thread_that_waits_longest(now: Waited, longest: int) -> None:
    assert longest_wait_ns({"7": (100, 20), "9": (5, 5)}, now) == longest


def test_a_living_root_without_processes_below_it_is_never_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is empty for a moment once let a guest run on that was said to stand still."""
    monkeypatch.setattr(freeze, "_PATIENCE_S", 0.05)
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]) as alone:
        try:
            assert not freeze.FrozenGuest(alone.pid).freeze()
        finally:
            alone.kill()
        os.waitid(os.P_PID, alone.pid, os.WEXITED | os.WNOWAIT)
        assert freeze.FrozenGuest(alone.pid).freeze()
    assert freeze.FrozenGuest(alone.pid).freeze()


def test_a_list_that_cant_be_read_is_no_empty_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_descriptors(path: str) -> list[str]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "listdir", out_of_descriptors)
    with pytest.raises(OSError, match="Too many open files"):
        freeze.descendants(os.getpid())
