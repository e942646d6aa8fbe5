"""Reading the memory of another process: what is there, what isn't, and a process that may not be read."""

import ctypes
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forge.errors import EnvironmentUnfit
from forge.sandbox.guest_memory import GuestMemory, next_step
from forge.sandbox.own_memory import are_own

HERE = ctypes.create_string_buffer(bytes(range(256)) * 64, 2**14)


@pytest.fixture
def own() -> GuestMemory:
    return GuestMemory([os.getpid()])


def test_bytes_are_read_where_they_lie(own: GuestMemory) -> None:
    target = bytearray(1000)
    assert own.read_into(memoryview(target)[10:], ctypes.addressof(HERE) + 7)
    assert bytes(target) == bytes(10) + HERE.raw[7:997]
    own.close()


@pytest.mark.parametrize("address", [0, 8, 2**47 - 4096, 2**63, 2**64 - 8])
def test_memory_that_is_not_there_is_said(own: GuestMemory, address: int) -> None:
    assert not own.read_into(memoryview(bytearray(8)), address)
    own.close()


def test_the_memory_of_a_process_that_has_ended_is_not_there() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    memory = GuestMemory([child.pid])
    memory.require_readable()
    child.communicate(b"\n")
    assert not memory.read_into(memoryview(bytearray(8)), ctypes.addressof(HERE))
    assert not memory.are_own([(ctypes.addressof(HERE), ctypes.addressof(HERE) + 8)])
    memory.close()


@pytest.mark.parametrize(
    ("pids", "said"), [([2**22 + 1], "No such file"), ([1, 2], "began with 2 processes"), ([], "began with 0")]
)
def test_memory_that_may_not_be_read_is_an_unfit_machine_where_it_is_needed(pids: list[int], said: str) -> None:
    memory = GuestMemory(pids)
    with pytest.raises(EnvironmentUnfit, match=said) as unfit:
        memory.require_readable()
    assert "ptrace" in str(unfit.value.hint)
    memory.close()


def test_the_next_step_is_a_restart_where_no_process_may_trace_and_a_rule_elsewhere() -> None:
    assert "restart the machine" in next_step("3")
    assert all("AppArmor, SELinux or seccomp" in next_step(scope) for scope in ("", "0", "1", "2"))


@pytest.mark.parametrize(
    ("flags", "own"),
    [
        (mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, True),
        (mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, False),
        (mmap.MAP_SHARED, False),
        (mmap.MAP_PRIVATE, False),
    ],
    ids=["private", "shared", "a file's", "a file's, privately"],
)
def test_memory_of_a_file_or_of_several_processes_is_not_own(flags: int, own: bool, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(2**14))
    with open(tmp_path / "file", "r+b") as file:
        here = mmap.mmap(-1 if flags & mmap.MAP_ANONYMOUS else file.fileno(), 2**14, flags)
    start = ctypes.addressof(ctypes.c_char.from_buffer(here))
    memory = GuestMemory([os.getpid()])
    assert memory.are_own([(start, start + 2**14)]) is own
    assert memory.are_own([(ctypes.addressof(HERE), ctypes.addressof(HERE) + len(HERE))])
    memory.close()


LISTED = """\
1000-2000 rw-p 00000000 00:00 0
2000-3000 r--p 00000000 00:00 0                          [anon: a name]
3000-4000 rw-s 00000000 00:01 7                          /dev/zero (deleted)
5000-6000 rw-p 00000000 00:00 0                          [heap]
6000-7000 rw-p 00001000 00:2b 9                          /a file\\012of two lines
"""


@pytest.mark.parametrize(
    ("spans", "own"),
    [
        ([(0x1000, 0x3000)], True),
        ([(0x1FF8, 0x2008), (0x5000, 0x5001)], True),
        ([(0x5FFF, 0x6000), (0x1000, 0x1008)], True),
        ([(0x1000, 0x3001)], False),
        ([(0xFFF, 0x1001)], False),
        ([(0x3000, 0x3008)], False),
        ([(0x4FFF, 0x5008)], False),
        ([(0x5FFF, 0x6001)], False),
        ([(0x6000, 0x6008)], False),
        ([(0x8, 0x10)], False),
        ([(0x8000, 0x8008)], False),
        ([], True),
    ],
)
def test_a_span_is_own_if_private_mappings_cover_it(spans: list[tuple[int, int]], own: bool) -> None:
    assert are_own(LISTED, spans) is own


def test_a_process_that_has_ended_owns_nothing() -> None:
    assert not are_own("", [(0x1000, 0x1008)])
