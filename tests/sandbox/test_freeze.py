"""Between releases a guest stands still, with everything it started."""

import mmap
import os
import struct
import sys
import time
from pathlib import Path

import pytest

from forge.sandbox.freeze import LATE_NS, Ran, only_late
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


def counters(memory: mmap.mmap) -> tuple[int, ...]:
    return struct.unpack_from("3Q", memory, 0)


def all_move(memory: mmap.mmap, before: tuple[int, ...]) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if all(now != then for now, then in zip(counters(memory), before, strict=True)):
            return True
        time.sleep(0.01)
    return False


def test_threads_children_and_orphans_stand_still_until_they_are_let_go(walled: Level, tmp_path: Path) -> None:
    with (tmp_path / "shared").open("w+b") as file:
        os.ftruncate(file.fileno(), 4096)
        confinement = Confinement(
            argv=(sys.executable, "-I", "-S", "-c", COUNTS),
            binds=runtime_binds(),
            masked=masked_paths(),
            environment={},
            descriptors=(file.fileno(),),
            limits=Limits(wall_s=60),
        )
        with mmap.mmap(file.fileno(), 4096) as memory, start(confinement, isolation=walled) as guest:
            assert all_move(memory, (0, 0, 0))
            for _ in range(3):
                assert guest.freeze()
                stopped = counters(memory)
                time.sleep(0.05)
                assert counters(memory) == stopped
                guest.thaw()
                assert all_move(memory, stopped)


def test_a_stopped_guest_is_killed_with_everything_it_started(walled: Level, tmp_path: Path) -> None:
    with (tmp_path / "shared").open("w+b") as file:
        os.ftruncate(file.fileno(), 4096)
        confinement = Confinement(
            argv=(sys.executable, "-I", "-S", "-c", COUNTS),
            binds=runtime_binds(),
            masked=masked_paths(),
            environment={},
            descriptors=(file.fileno(),),
            limits=Limits(wall_s=60),
        )
        with mmap.mmap(file.fileno(), 4096) as memory:
            with start(confinement, isolation=walled) as guest:
                assert all_move(memory, (0, 0, 0))
                assert guest.freeze()
                stopped = counters(memory)
                guest.kill()
            time.sleep(0.05)
            assert counters(memory) == stopped
            assert guest.freeze()


@pytest.mark.parametrize(
    ("now", "still"),
    [
        ({"7": (500, 3)}, True),
        ({"7": (500 + LATE_NS, 3)}, True),
        ({}, True),
        ({"7": (501 + LATE_NS, 3)}, False),
        ({"7": (500, 4)}, False),
        ({"7": (500, 3), "8": (0, 1)}, False),
    ],
)
def test_a_thread_may_leave_its_processor_late_and_no_more(now: Ran, still: bool) -> None:
    assert only_late({"7": (500, 3)}, now) is still
