"""A block is left out for what the device says of itself, on all sides at once, and never for a time."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.device import HARMLESS, SLOWDOWN_REASONS, Device, DeviceState, SlowdownReason
from forge.lab.timing import blocks
from forge.lab.timing.blocks import ROUNDS, Blocks, descendants, disturbances

DEVICE = Device(index=0, uuid="GPU-0f8a", node="/dev/nvidia0")
# As nvidia-smi shows an H200 at work.
QUIET = DeviceState(
    sm_clock_mhz=1980.0,
    memory_clock_mhz=3201.0,
    power_w=310.0,
    temperature_c=41.0,
    slowdown=("software_power_cap",),
    utilisation=0.98,
    compute_pids=(),
    memory_used_bytes=2**30,
    host_load=1.0,
    host_busy_s=100.0,
    host_stolen_s=0.0,
)
HOT = QUIET.model_copy(update={"slowdown": ("hardware_thermal",), "sm_clock_mhz": 1200.0})
SHARED = QUIET.model_copy(update={"compute_pids": (1,)})


def states(monkeypatch: pytest.MonkeyPatch, *said: DeviceState | None) -> None:
    """In place of the GPU that isn't here: what its driver says, one state after the other."""
    left: Iterator[DeviceState | None] = iter(said)
    monkeypatch.setattr(blocks, "sample", lambda _: next(left))


def rounds(count: int) -> list[dict[str, int]]:
    return [{"candidate": 1000 + number, "eager": 2000 + number} for number in range(count)]


def fill(found: Blocks, count: int) -> None:
    for measured in rounds(count):
        found.add(measured)
    found.close()


def test_without_a_driver_to_ask_every_round_counts() -> None:
    found = Blocks(None)
    fill(found, 2 * ROUNDS + 1)
    assert (found.rounds, found.states) == (rounds(2 * ROUNDS + 1), [])
    assert (found.count, found.dropped, found.reasons) == (3, 0, set())


def test_a_disturbed_block_is_left_out_whole_and_the_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    states(monkeypatch, QUIET, QUIET, HOT, QUIET, QUIET)
    found = Blocks(DEVICE)
    fill(found, 4 * ROUNDS)
    # the hot moment ends the second block and begins the third
    assert found.rounds == rounds(4 * ROUNDS)[:ROUNDS] + rounds(4 * ROUNDS)[3 * ROUNDS :]
    assert (found.count, found.dropped) == (4, 2)
    assert found.reasons == {"clocks held back: hardware_thermal"}
    assert found.states == [QUIET, QUIET, HOT, QUIET, QUIET]


def test_a_block_on_a_shared_device_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    states(monkeypatch, QUIET, SHARED)
    found = Blocks(DEVICE)
    fill(found, 3)
    assert (found.rounds, found.count, found.dropped) == ([], 1, 1)
    assert found.reasons == {"process 1 on the device"}


def test_a_last_block_that_is_short_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    states(monkeypatch, QUIET, QUIET, HOT)
    found = Blocks(DEVICE)
    fill(found, ROUNDS + 1)
    assert (len(found.rounds), found.count, found.dropped) == (ROUNDS, 2, 1)


def test_a_block_that_was_never_begun_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    states(monkeypatch, QUIET, QUIET)
    found = Blocks(DEVICE)
    fill(found, ROUNDS)
    found.close()
    assert (found.count, found.dropped, len(found.states)) == (1, 0, 2)


def test_what_a_driver_does_not_say_is_held_against_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disturbances(None, HOT, own_pids=set()) == disturbances(HOT, None, own_pids=set()) == ()
    states(monkeypatch, QUIET, None, QUIET)
    found = Blocks(DEVICE)
    fill(found, 2 * ROUNDS)
    assert (found.count, found.dropped, found.states) == (2, 0, [QUIET, QUIET])


reasons = st.lists(st.sampled_from(SLOWDOWN_REASONS), unique=True).map(tuple)
pids = st.lists(st.integers(1, 9), unique=True).map(tuple)


@given(first=reasons, second=reasons, before=pids, after=pids, own=st.sets(st.integers(1, 9)))
def test_only_what_comes_from_outside_disturbs_at_either_moment(
    first: tuple[SlowdownReason, ...],
    second: tuple[SlowdownReason, ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
    own: set[int],
) -> None:
    found = disturbances(
        QUIET.model_copy(update={"slowdown": first, "compute_pids": before}),
        QUIET.model_copy(update={"slowdown": second, "compute_pids": after}),
        own_pids=own,
    )
    held = {f"clocks held back: {reason}" for reason in {*first, *second} - HARMLESS}
    others = {f"process {pid} on the device" for pid in {*before, *after} - own}
    assert set(found) == held | others
    assert len(found) == len(held) + len(others)


def test_a_processs_own_family_is_not_somebody_else() -> None:
    inner = "import os; print(os.getpid(), flush=True); input()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        grandchild = int(child.stdout.readline())
        assert {os.getpid(), child.pid, grandchild} <= descendants()
        assert os.getppid() not in descendants()
    finally:
        child.communicate(b"\n", timeout=120)
    assert not {child.pid, grandchild} & descendants()
