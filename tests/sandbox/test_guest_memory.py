"""Reading the memory of another process: what is there, what isn't, and a process that may not be read."""

import ctypes
import os
import subprocess
import sys

import pytest

from forge.errors import EnvironmentUnfit
from forge.sandbox.guest_memory import GuestMemory

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
