"""What the watch counts where no cgroup does; every process here is real."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.sandbox.ending import exit_of
from forge.sandbox.memory import Excess, Watched, _field_bytes, _text, held_bytes

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/meminfo"), reason="the watch reads /proc")

TAKES = """
import mmap, os, sys, time
if os.fork():
    time.sleep(60)
kept = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(kept), 4096):
    kept[at] = 1
if os.fork() == 0:
    print("taken", flush=True)
time.sleep(60)
"""


@pytest.fixture
def tree() -> Iterator[subprocess.Popen[bytes]]:
    """A process with one below it that has taken 64 MiB, and a child of that which shares them."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", TAKES], stdout=subprocess.PIPE, start_new_session=True
    ) as one:
        assert one.stdout is not None
        one.stdout.readline()
        yield one
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, 9)


def seen(limit_bytes: int, *, root: int | None = None, **rest: object) -> Excess | None:
    return Watched(root or os.getpid(), limit_bytes, scratch=None, given=(), **rest).look()  # type: ignore[arg-type]


def test_pages_that_a_child_shares_are_counted_once(tree: subprocess.Popen[bytes]) -> None:
    assert seen(64 << 20, root=tree.pid) == "total"
    assert seen(100 << 20, root=tree.pid) is None


def test_what_a_tree_holds_is_seen_by_whoever_started_it(tree: subprocess.Popen[bytes]) -> None:
    assert 128 << 20 <= held_bytes(tree.pid, None) <= 200 << 20
    os.killpg(tree.pid, 9)
    tree.wait()
    assert held_bytes(tree.pid, None) == 0


def test_a_machine_that_runs_out_is_seen_whoever_takes_it() -> None:
    assert seen(1 << 60, reserve=1.0) == "machine"
    assert seen(1 << 60, reserve=0.0) is None


@pytest.mark.parametrize(("excess", "from_load"), [("machine", True), ("total", False)])
def test_only_the_memory_of_the_whole_machine_may_be_what_others_took(excess: Excess, from_load: bool) -> None:
    assert exit_of(None, timed_out=False, flooded=False, excess=excess).from_load == from_load
    assert not exit_of(None, timed_out=False, flooded=True, excess=excess).from_load


def test_looking_costs_a_tenth_of_a_core_at_most() -> None:
    watched = Watched(os.getpid(), 1 << 60, scratch=None, given=())
    began_s = time.process_time()
    until_s = time.monotonic() + 0.6
    looks = 0
    while time.monotonic() < until_s or looks <= 20:
        watched.look()
        time.sleep(0.005)
        looks += 1
    assert time.process_time() - began_s < 0.3


LEAVES = """
import ctypes, platform, threading, time
held = bytearray(b"x") * 2**25
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""
"""Program whose first thread ends alone, while another one stays."""


def test_memory_shows_after_the_first_thread_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", LEAVES]) as left:
        try:
            status = Path(f"/proc/{left.pid}/status")
            while "RssAnon" in status.read_text():
                time.sleep(0.01)
            assert _field_bytes("RssAnon", _text(left.pid, "status")) > 2**25
            assert _field_bytes("Pss_Anon", _text(left.pid, "smaps_rollup")) > 2**25
        finally:
            left.kill()
