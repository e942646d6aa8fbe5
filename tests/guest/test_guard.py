"""Closed pages end a process that touches them until the next layout; the far mapping has the same bytes."""

import os
import signal
import subprocess
import sys

import pytest

SCRIPT = """
import mmap, sys
from forge.guest.guard import close_pages
page = mmap.PAGESIZE
arena = mmap.mmap(-1, 4 * page)
close_pages(arena, len(arena), [[page, 2 * page, "none"], [2 * page, 3 * page, "read"]])
def touch(what):
    if what == "reads closed": arena[page]
    if what == "writes read-only": arena[2 * page] = 1
    if what == "reads read-only": arena[2 * page]
    if what == "writes open": arena[0] = arena[3 * page] = 1
    if what == "writes after the next layout":
        close_pages(arena, len(arena), [])
        arena[page] = arena[2 * page] = 1
touch(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("touch", "ends"),
    [
        ("reads closed", True),
        ("writes read-only", True),
        ("reads read-only", False),
        ("writes open", False),
        ("writes after the next layout", False),
    ],
)
def test_what_touches_a_closed_page_ends(touch: str, ends: bool) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, touch], check=False, capture_output=True, timeout=60)
    faults = (-signal.SIGSEGV, -signal.SIGBUS)
    assert (done.returncode in faults) if ends else (done.returncode == 0), done.stderr


FAR = """
import ctypes, mmap, os
from forge.guest.guard import map_far
memory = os.memfd_create("memory")
os.ftruncate(memory, 2 * mmap.PAGESIZE)
near = mmap.mmap(memory, 2 * mmap.PAGESIZE)
start = ctypes.addressof(ctypes.c_char.from_buffer(near))
far = map_far(memory, start, len(near))
far[5] = 7
print(near[5], start - ctypes.addressof(far) - len(near) >= 2**32)
"""


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the arena is a file here")
def test_the_far_mapping_has_the_same_bytes_beyond_what_32_bits_count() -> None:
    done = subprocess.run([sys.executable, "-c", FAR], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["7", "True"]
