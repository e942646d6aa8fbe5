"""A launcher of many plans goes on without those that break it. The device's part is played here."""

import random
from collections.abc import Sequence

import pytest

from forge.domain.authoring import FailedTrial
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.screen.device_clock import REFERENCE, DeviceClock
from forge.lab.screen.prepare import Fit
from forge.lab.screen.race import Paired
from tests.candidates import job_for
from tests.lab.test_launchers import plan_of

BROKEN = FailedTrial(stage="time", reason=Reason(code="RUNTIME_ERROR", message="an illegal address"))


class Played(DeviceClock):
    """A clock whose windows are given: nanoseconds of a call by place, and windows after which a place breaks."""

    def __init__(
        self, times_ns: dict[int, float], breaks_after: dict[int, int], *, at_start: Sequence[int] = ()
    ) -> None:
        job = job_for("", language="triton")
        fits = {place: Fit(job=job, artifact=(), plan=plan_of(b"code", 1)) for place in times_ns}
        reference = fits.pop(REFERENCE)
        super().__init__(fits, reference, random.Random(1))
        self._times_ns, self._left, self._at_start = times_ns, dict(breaks_after), list(at_start)
        self.starts: list[list[int]] = []
        self.windows: list[int] = []

    def _open(self, places: Sequence[int]) -> tuple[int, FailedTrial] | None:
        self.starts.append(list(places))
        broken = next((place for place in self._at_start if place in places), None)
        return None if broken is None else (broken, BROKEN)

    def _window(self, place: int, offset: int) -> float | FailedTrial:  # noqa: ARG002  # the parent's signature
        self.windows.append(place)
        if place in self._left:
            self._left[place] -= 1
            if self._left[place] < 0:
                return BROKEN
        return self._times_ns[place]


def test_each_round_times_every_plan_beside_the_reference_in_a_drawn_order() -> None:
    with Played({REFERENCE: 100.0, 0: 50.0, 1: 200.0}, {}) as clock:
        rounds = [clock.measure([0, 1]) for _ in range(8)]
    assert rounds == [{0: Paired(50.0, 100.0), 1: Paired(200.0, 100.0)}] * 8
    orders = {tuple(clock.windows[begin : begin + 3]) for begin in range(0, 24, 3)}
    assert all(sorted(order) == [REFERENCE, 0, 1] for order in orders)
    assert len(orders) > 1


def test_a_plan_that_breaks_the_launcher_is_left_out_and_the_round_is_made_again() -> None:
    with Played({REFERENCE: 100.0, 0: 50.0, 1: 200.0}, {1: 1}) as clock:
        first, second, third = clock.measure([0, 1]), clock.measure([0, 1]), clock.measure([0])
    assert first[1] == Paired(200.0, 100.0)
    assert second == {0: Paired(50.0, 100.0), 1: BROKEN}
    assert third == {0: Paired(50.0, 100.0)}
    assert clock.starts == [[REFERENCE, 0, 1], [REFERENCE, 0]]
    assert clock.failed == {1: BROKEN}


def test_plans_that_cant_even_start_are_left_out_one_after_the_other() -> None:
    with Played({REFERENCE: 100.0, 0: 50.0, 1: 200.0, 2: 70.0}, {}, at_start=[2, 0]) as clock:
        assert clock.measure([place for place in range(3) if place not in clock.failed]) == {1: Paired(200.0, 100.0)}
    assert clock.starts == [[REFERENCE, 0, 1, 2], [REFERENCE, 0, 1], [REFERENCE, 1]]


def test_without_the_reference_there_is_no_screening() -> None:
    with (
        Played({REFERENCE: 100.0, 0: 50.0}, {REFERENCE: 0}) as clock,
        pytest.raises(EnvironmentUnfit, match="reference"),
    ):
        clock.measure([0])
