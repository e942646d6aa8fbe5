"""The processor time of a guest after its reply is counted whatever its processes do."""

import os
import time

import pytest

from forge.sandbox.late_work import clocks_of, grown_ns


@pytest.mark.parametrize(
    ("now", "grown_by"),
    [({7: 100}, 0), ({7: 130}, 30), ({7: 130, 8: 50}, 80), ({8: 50}, 50), ({}, 0)],
    ids=["idle", "worked", "a new one", "an end beside a new one", "an end"],
)
def test_a_process_that_ends_hides_no_others_work(now: dict[int, int], grown_by: int) -> None:
    assert grown_ns({7: 100}, now) == grown_by


def test_a_clock_counts_what_runs_and_a_process_that_is_gone_has_none() -> None:
    before = clocks_of([os.getpid()])
    began_ns = time.process_time_ns()
    while time.process_time_ns() == began_ns:
        pass
    assert grown_ns(before, clocks_of([os.getpid()])) > 0
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    assert clocks_of([gone]) == {}
