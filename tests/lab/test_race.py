"""How drafts are ranked by paired windows, and which are dropped."""

import math
import random
from collections.abc import Mapping, Sequence

from forge.domain.authoring import FailedTrial, TimedTrial
from forge.domain.verdict import Reason
from forge.lab.screen.race import FINAL_WINDOWS, RUNGS, Paired, Race

BROKEN = FailedTrial(stage="time", reason=Reason(code="RUNTIME_ERROR", message="it ended"))


class Track:
    """Windows of drafts whose true ratios to the reference are known, and which draft was asked how often."""

    def __init__(self, ratios: Mapping[int, float], *, noise: float = 0.01, seed: int = 1) -> None:
        self._ratios, self._noise, self._rng = ratios, noise, random.Random(seed)
        self.asked = dict.fromkeys(ratios, 0)

    def measure(self, alive: Sequence[int]) -> Mapping[int, Paired | FailedTrial]:
        return {place: self._window(place) for place in alive}

    def _window(self, place: int) -> Paired | FailedTrial:
        self.asked[place] += 1
        if math.isnan(self._ratios[place]):
            return BROKEN
        own_ns = 1000.0 / self._ratios[place] * math.exp(self._rng.gauss(0, self._noise))
        return Paired(own_ns, 1000.0 * math.exp(self._rng.gauss(0, self._noise)))


def test_slow_drafts_are_dropped_early_and_near_ones_are_measured_to_the_end() -> None:
    track, race = Track({0: 1.0, 1: 1.02, 2: 0.5, 3: 2.0, 4: 1.99}), Race(0.0)
    race.run(range(5), track.measure, final=False)
    assert track.asked == {0: RUNGS[0], 1: RUNGS[0], 2: RUNGS[0], 3: RUNGS[-1], 4: RUNGS[-1]}
    ratios = [one.speedup.ratio for one in map(race.result, range(5)) if isinstance(one, TimedTrial)]
    assert [round(ratio, 1) for ratio in ratios] == [1.0, 1.0, 0.5, 2.0, 2.0]


def test_a_final_race_drops_none_and_its_error_is_that_between_processes() -> None:
    race = Race(0.02)
    for process, shift in enumerate((0.9, 1.0, 1.1)):
        race.run((0, 1), Track({0: shift, 1: 0.1}, noise=0.001, seed=process).measure, final=True)
    near, far = race.result(0), race.result(1)
    assert isinstance(near, TimedTrial)
    assert isinstance(far, TimedTrial)
    assert (near.processes, near.windows, far.windows) == (3, 3 * FINAL_WINDOWS, 3 * FINAL_WINDOWS)
    assert near.log_error > 0.04  # 12 windows of each process have an error of 0.0004
    assert near.speedup.low < 1 < near.speedup.high


def test_a_draft_that_fails_while_it_is_timed_is_asked_no_more() -> None:
    track, race = Track({0: 1.0, 1: math.nan}), Race(0.0)
    race.run((0, 1), track.measure, final=False)
    race.run((0, 1), track.measure, final=False)
    assert track.asked == {0: 2 * RUNGS[-1], 1: 1}
    assert race.result(1) == BROKEN


def test_one_disturbed_window_doesnt_move_a_ratio() -> None:
    race = Race(0.0)
    race.windows[0] = [[Paired(100.0, 150.0)] * 9 + [Paired(9000.0, 150.0)]]
    estimate, error = race.estimate(0)
    assert math.isclose(estimate, math.log(1.5))
    assert error == 0


def test_work_below_the_noise_of_the_path_is_no_error() -> None:
    race = Race(0.0)
    race.run((0,), lambda alive: {place: Paired(-3.0, 5.0) for place in alive}, final=False)
    assert isinstance(race.result(0), TimedTrial)


def test_equal_drafts_are_rarely_dropped() -> None:
    dropped = 0
    for seed in range(100):
        track, race = Track(dict.fromkeys(range(8), 1.0), seed=seed), Race(0.0)
        race.run(range(8), track.measure, final=False)
        dropped += sum(asked < RUNGS[-1] for asked in track.asked.values())
    assert dropped < 0.1 * 8 * 100
