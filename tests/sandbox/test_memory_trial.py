"""Whether the host can read its guests' memory is tried on a guest, and a refusal is said with the next step."""

import json
import platform
import subprocess
import sys

import confined
import pytest

from forge.app.machine.doctor import examine_machine
from forge.sandbox.isolation import Level
from forge.sandbox.memory_trial import try_guest_memory

READS = {"x86_64": (295, 327), "aarch64": (69, 286)}
"""Numbers of preadv and preadv2, with which the host reads memory (asm/unistd_64.h, asm-generic/unistd.h)."""
UNSHARE = {"x86_64": (272, 165), "aarch64": (97, 40)}
"""Numbers of unshare and mount, without which no wall can be built."""
REFUSED = """
import ctypes, os, struct, sys
denied = [int(number) for number in sys.argv[1:]]
lines = [(0x20, 0, 0, 0)]
lines += [(0x15, len(denied) - place, 0, number) for place, number in enumerate(denied)]
lines += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | 1)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
head = struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, head, 0, 0):
    sys.exit(f"no filter: errno {ctypes.get_errno()}")
os.execv(sys.executable, [sys.executable, "-m", "forge", "doctor", *["--json"] * ("JSON" in os.environ)])
"""
"""Program that refuses these system calls to itself by seccomp, as a security module may, then asks the doctor."""


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
def test_the_memory_of_a_guest_is_read_where_it_is_allowed(level: Level) -> None:
    confined.require(level)
    assert try_guest_memory(level) is None


def test_the_doctor_says_that_it_can_be_read() -> None:
    level = confined.require("namespaces").level
    found = examine_machine()
    assert found["guest_memory"] == {"readable": True}
    assert found["isolation"]["level"] == level  # type: ignore[index]  # a JSON document


def told(calls: tuple[int, ...], *, as_json: bool = True) -> str:
    """Return what the doctor says of a machine that refuses these system calls to it."""
    asked = subprocess.run(
        [sys.executable, "-c", REFUSED, *map(str, calls)],
        capture_output=True,
        text=True,
        check=False,
        timeout=confined.WALL_S,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "400", **({"JSON": "1"} if as_json else {})},
    )
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


def numbers(table: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    confined.require("namespaces")
    found = table.get(platform.machine())
    if found is None:
        pytest.skip(f"the numbers of the system calls of {platform.machine()} aren't known")
    return found


def test_the_doctor_says_that_reading_was_refused_and_what_to_do() -> None:
    found = json.loads(told(numbers(READS)))
    reason = "the host may not read the memory of its guests"
    assert found["guest_memory"]["readable"] is False
    assert reason in found["guest_memory"]["reason"]
    assert "trace its own child processes" in found["guest_memory"]["next_step"]
    assert found["isolation"]["level"] == "namespaces"
    assert found["languages"]["cpp"]["times_here_on"] == []
    (line,) = [line for line in told(numbers(READS), as_json=False).splitlines() if "guest memory" in line]
    assert reason in line
    assert "; next: let this user trace" in line


def test_without_isolation_no_memory_is_read() -> None:
    found = json.loads(told(numbers(UNSHARE)))
    assert found["isolation"]["level"] == "none"
    assert found["guest_memory"] == {"readable": None}
    assert found["languages"]["cpp"]["times_here_on"] == ["cpu"]
