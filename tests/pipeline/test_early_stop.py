"""An early stop refuses only what no noise could save: what is near the threshold is measured in full."""

import math
import random
from dataclasses import replace

import pytest

from forge.domain.early_stop import LIMIT
from forge.lab.timing.slope import SlopeSamples
from forge.pipeline.early_stop import early_stop, has_no_chance
from forge.pipeline.samples import Samples
from forge.pipeline.timings import Measured, workload_timing
from tests.pipeline.test_decide import TASK
from tests.pipeline.test_timings import replays

SPEEDS = {"eager": 1.0, "control": 1.0, "compile": 1.0}


def pair(
    candidate: float, *, noise: float = 0.0, effect: float = 0.0, rng: random.Random | None = None
) -> SlopeSamples:
    """One process pair of 12 rounds: side -> time, with noise of each call and an effect of each process."""
    drawn = rng or random.Random(1)
    times = {**SPEEDS, "candidate": candidate}
    process = {side: time * math.exp(drawn.gauss(0, effect)) for side, time in times.items()}
    rounds = tuple(
        {side: 1e6 * time * math.exp(drawn.gauss(0, noise)) for side, time in process.items()} | {"harness": 0.0}
        for _ in range(12)
    )
    return SlopeSamples(calls=1, pairs=(rounds,))


def test_half_as_fast_as_the_baseline_is_told_after_one_pair_with_its_figures() -> None:
    found = early_stop(TASK, pair(1 / 0.46, noise=0.02))
    assert found is not None
    assert (found.baseline in ("eager", "compile"), found.rounds, found.limit) == (True, 12, LIMIT)
    assert math.isclose(found.ratio, 0.46, rel_tol=0.03)
    assert found.ratio < found.most_favourable < LIMIT
    by_hand = math.log(found.ratio) + 4 * (found.error + found.control_error) + abs(math.log(found.control))
    assert math.isclose(found.most_favourable, math.exp(by_hand))
    assert 0.003 < found.error < 0.03


@pytest.mark.parametrize(("noise", "effect"), [(0.05, 0.03), (0.15, 0.1), (0.5, 0.1), (1.1, 0.1)])
def test_a_kernel_at_the_threshold_is_never_stopped_however_noisy_the_machine(noise: float, effect: float) -> None:
    rng = random.Random(7)
    assert not any(has_no_chance(TASK, pair(1 / 1.1, noise=noise, effect=effect, rng=rng)) for _ in range(300))


def test_noise_makes_a_stop_rarer() -> None:
    rng = random.Random(3)
    shares = [
        sum(has_no_chance(TASK, pair(1 / 0.6, noise=noise, rng=rng)) for _ in range(100))
        for noise in (0.01, 0.04, 0.2)
    ]
    assert shares[0] == 100
    assert shares[0] > shares[1] > shares[2]


@pytest.mark.parametrize("factor", [0.6, 1 / 0.6])
def test_a_control_that_is_off_in_either_direction_is_a_reason_to_go_on(factor: float) -> None:
    stopped = pair(2.0)
    assert has_no_chance(TASK, stopped)
    (rounds,) = stopped.pairs
    off = tuple({**one, "control": one["control"] * factor} for one in rounds)
    assert not has_no_chance(TASK, replace(stopped, pairs=(off,)))


def test_rounds_that_differ_are_a_reason_to_go_on() -> None:
    (rounds,) = pair(2.0).pairs
    apart = tuple(
        {**one, "candidate": one["candidate"] * (1.6 if at % 2 else 1 / 1.6)} for at, one in enumerate(rounds)
    )
    assert not has_no_chance(TASK, SlopeSamples(calls=1, pairs=(apart,)))


def test_more_pairs_disturbed_blocks_and_times_below_zero_are_never_a_stop() -> None:
    stopped = pair(2.0)
    (rounds,) = stopped.pairs
    assert not has_no_chance(TASK, replace(stopped, pairs=(rounds, rounds)))
    assert not has_no_chance(TASK, replace(stopped, pairs=(({**rounds[0], "control": -1.0}, *rounds[1:]),)))
    slow = replays(candidate_ns=100_000.0)
    one = replace(slow, pairs=slow.pairs[:1], dropped=0)
    assert has_no_chance(TASK, one)
    assert not has_no_chance(TASK, replace(one, dropped=1))


def test_only_the_baseline_that_must_be_beaten_counts() -> None:
    (rounds,) = pair(1.6).pairs
    fast_compile = SlopeSamples(calls=1, pairs=(tuple({**one, "compile": 4e5} for one in rounds),))
    found = early_stop(TASK, fast_compile)
    assert found is not None
    assert found.baseline == "compile"
    easy = TASK.model_copy(update={"baseline": "eager"})
    (beaten,) = pair(0.6).pairs
    assert not has_no_chance(easy, SlopeSamples(calls=1, pairs=(tuple({**one, "compile": 1e5} for one in beaten),)))
    assert not has_no_chance(TASK.model_copy(update={"baseline": "vendor"}), pair(9.0))


def test_what_is_stopped_has_lost_a_pair_so_that_the_rule_would_refuse_it_with_any_further_pairs() -> None:
    stopped, lucky = pair(1 / 0.46), pair(1 / 4.0)
    found = early_stop(TASK, stopped)
    assert found is not None
    joined = replace(stopped, pairs=(*stopped.pairs, *(lucky.pairs * 9)))
    measured = Measured(samples=Samples((joined,)), floor_ns=1.0, claims={})
    timing = workload_timing(TASK.shape, measured, samples_sha256="0" * 64)
    assert all(one.pairs_lost == 1 for one in timing.speedups)
