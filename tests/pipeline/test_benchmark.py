"""A winner's second measurement: as long as the first, and over what earlier ones without a verdict took."""

from dataclasses import replace

import pytest

from forge.domain.verdict import Reason
from forge.lab.finding import Failed
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.slope import SlopeSamples
from forge.pipeline.benchmark import confirm, confirmation_so_far
from forge.pipeline.samples import Samples, Taken
from forge.pipeline.timings import Measured
from tests.pipeline.test_timings import replays

SLOPE = SlopeSamples(calls=2, pairs=(({"candidate": 20},),))


def made(count: int, *, first: int = 0) -> tuple[ReplaySamples, ...]:
    """Attempts that can be told apart."""
    return tuple(replace(replays(), device_ns=first + number) for number in range(count))


@pytest.mark.parametrize(("attempts", "kept"), [(1, 0), (3, 0), (3, 1), (3, 2), (3, 3), (2, 3)])
def test_a_confirmation_has_as_many_attempts_as_the_samples_and_drops_none(attempts: int, kept: int) -> None:
    measured = Measured(samples=Samples(made(attempts)), floor_ns=1.0, claims={})
    earlier, fresh = made(kept, first=100), iter(made(attempts, first=200))
    found = confirm(measured, Samples(earlier) if kept else None, lambda: next(fresh))
    assert isinstance(found, Measured)
    assert found.samples == measured.samples
    assert found.confirmation == Samples((*earlier, *made(max(0, attempts - kept), first=200)))


def test_a_confirmation_that_fails_ends_the_attempt() -> None:
    reason = Reason(code="CLOCK_DISAGREES", message="two clocks")
    failed = Failed(reason=reason, observed="apart", threshold="agree")
    measured = Measured(samples=Samples(made(2)), floor_ns=1.0, claims={})
    assert confirm(measured, None, lambda: failed) is failed


def test_only_times_of_the_same_clock_are_added_to() -> None:
    samples, before = Samples(made(2)), Samples(made(1, first=100))
    worthless = Samples((replace(replays(candidate_ns=0.0), device_ns=7),))
    assert confirmation_so_far(Taken(samples, before), samples) == before
    assert confirmation_so_far(Taken(samples, None), samples) is None
    assert confirmation_so_far(None, samples) is None
    assert confirmation_so_far(Taken(samples, worthless), samples) is None
    assert confirmation_so_far(Taken(samples, before), Samples((SLOPE,))) is None
