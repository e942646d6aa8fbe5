"""A candidate that leaves out what the harness does around a call shows: the harness alone takes longer."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from forge.domain.policy import Policy
from forge.lab.timing.cpu_processes import CANDIDATE, HARNESS, GuestSet, open_guests
from forge.lab.timing.harness_alone import RELEASES, harness_alone_ns, left_out
from forge.lab.timing.release_plan import Planned
from forge.lab.timing.slope import _measure_rounds, _SlopePair
from forge.operations import OPERATIONS, reference_source
from tests.candidates import job_for


@pytest.mark.parametrize(
    ("work_ns", "found"),
    [
        ([100_000.0, 90_000.0, 120_000.0], False),
        ([70_000.0, 71_000.0, 900_000.0], False),
        ([69_000.0, 69_000.0, 900_000.0], True),
        ([12_000.0, 9_000.0, 10_000.0], True),
        ([12_000.0, -9_000.0, 10_000.0], False),
    ],
    ids=["honest", "at the limit", "below it", "far below it", "noise above the work"],
)
def test_a_time_below_that_of_the_harness_is_refused(work_ns: list[float], found: bool) -> None:
    failed = left_out(work_ns, 100_000, calls=10)
    assert (failed is not None) == found
    if failed is not None:
        assert failed.reason.code == "CLOCK_DISAGREES"
        assert "takes 10.0 us alone" in failed.reason.message


def test_a_harness_that_seems_to_take_no_time_refuses_nobody() -> None:
    assert left_out([5_000.0, 6_000.0], -3_000, calls=10) is None


@contextmanager
def _opened(name: str, dtype: str) -> Iterator[GuestSet]:
    operation = OPERATIONS[name]
    shape = {**operation.workloads[0], operation.row_axis: 2}
    made = job_for(reference_source(operation), language="torch")
    policy = Policy(baselines=("eager",), memory_limit_bytes=2**30)
    asked = replace(made, operation=operation, entry_point=name, dtype=dtype, shape=shape, held_out=(), policy=policy)
    with ExitStack() as stack:
        guests = stack.enter_context(open_guests(asked, ())).fresh()
        assert isinstance(guests, GuestSet)
        yield stack.enter_context(guests)


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize(("name", "dtype"), [("quantize_fp8", "bf16"), ("kv_cache_append", "fp32")])
def test_the_harness_alone_can_be_timed_for_any_form_of_outputs(name: str, dtype: str) -> None:
    with _opened(name, dtype) as guests:
        harness = guests.kernel(HARNESS)
        assert isinstance(harness_alone_ns(harness, [harness.case(harness.shape) for _ in range(3)]), int)
        assert harness.calls >= 3 * RELEASES


@pytest.mark.usefixtures("walls")
def test_each_pair_asks_what_the_harness_takes_alone() -> None:
    with _opened("softmax", "fp32") as guests:
        before = guests.kernel(HARNESS).calls
        _measure_rounds(_SlopePair(guests, Planned(shown=6, asked=3), random.Random(1)), Policy(rounds=6))
        assert guests.kernel(HARNESS).calls == before + 3 * RELEASES


@pytest.mark.usefixtures("walls")
def test_empty_releases_that_waited_for_a_processor_refuse_nobody() -> None:
    with _opened("softmax", "fp32") as guests:
        pair = _SlopePair(guests, Planned(shown=6, asked=3), random.Random(1))
        pair.rounds = [{CANDIDATE: 2e9, HARNESS: waited} for waited in (2e9 - 1, 1e6, 2e9 - 1)]
        assert pair.leaves_harness_out() is None
        pair.rounds = [{CANDIDATE: 1e6 + 1, HARNESS: 1e6}] * 3
        assert pair.leaves_harness_out() is not None
