"""Raw samples: what is stored is what was measured, and is read back as it was."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.device import DeviceState
from forge.errors import BlobCorrupt
from forge.lab.replays import Replays
from forge.lab.timing import Attempt, Release
from forge.pipeline.samples import REPLAY, SLOPE, Samples, Taken, parse_samples, protocol_of, render_samples

SIDES = ("candidate", "control", "eager", "harness")
times = st.integers(min_value=1, max_value=2**53)


@st.composite
def attempts(draw: st.DrawFn) -> Attempt:
    few = draw(st.integers(1, 20))
    rounds = draw(st.integers(1, 4))
    release = st.builds(Release, few_ns=times, many_ns=times)
    measured = st.fixed_dictionaries(dict.fromkeys(SIDES, release))
    pairs = st.lists(st.lists(measured, min_size=rounds, max_size=rounds).map(tuple), min_size=1, max_size=3)
    return Attempt(few=few, many=few + draw(st.integers(1, 200)), pairs=tuple(draw(pairs)))


STATE = DeviceState(
    sm_clock_mhz=1980.0,
    memory_clock_mhz=None,
    power_w=310.5,
    temperature_c=41.0,
    slowdown=("gpu_idle", "software_power_cap"),
    utilisation=0.98,
    compute_pids=(17, 4),
    memory_used_bytes=None,
    host_load=1.25,
    host_busy_s=100.0,
    host_stolen_s=0.0,
)


@st.composite
def replays(draw: st.DrawFn) -> Replays:
    """Pairs may have lost different blocks, so they needn't have the same number of rounds."""
    measured = st.fixed_dictionaries(dict.fromkeys(SIDES, times))
    pairs = draw(st.lists(st.lists(measured, min_size=1, max_size=4).map(tuple), min_size=1, max_size=3))
    dropped = draw(st.integers(0, 3))
    return Replays(
        calls={side: draw(st.integers(1, 4096)) for side in SIDES},
        pairs=tuple(pairs),
        host_ratio=tuple(draw(st.lists(st.floats(0.5, 2), min_size=len(pairs), max_size=len(pairs)))),
        sets=draw(st.integers(2, 512)),
        set_bytes=draw(st.integers(1, 2**40)),
        states=draw(st.sampled_from([(), (STATE, STATE.model_copy(update={"power_w": 1.0}))])),
        blocks=draw(st.integers(1, 20)) + dropped,
        dropped=dropped,
        device_ns=draw(times),
    )


@given(st.lists(replays(), min_size=1, max_size=3).map(tuple))
def test_replays_are_read_back_as_they_were(made: tuple[Replays, ...]) -> None:
    samples = Samples(made)
    stored = render_samples(samples)
    again = parse_samples(stored).samples
    assert again == samples
    assert render_samples(again) == stored
    assert protocol_of(stored) == REPLAY
    for earlier in (b"graph_replay.v1", b"graph_replay.v2"):
        taken_before = stored.replace(b"graph_replay.v3", earlier)
        assert parse_samples(taken_before).samples == samples
        assert protocol_of(taken_before) != REPLAY
    assert (again.method, again.sides, again.usable) == ("launch_plan", SIDES, True)
    assert len(again.per_call_ns("candidate")) == sum(len(attempt.pairs) for attempt in made)


@given(attempts(), replays(), replays())
def test_a_second_attempt_adds_to_the_first_unless_it_was_measured_in_another_way(
    slope: Attempt, first: Replays, second: Replays
) -> None:
    assert Samples.of(slope).with_one_more(slope) == Samples((slope, slope))
    assert Samples.of(first).with_one_more(second) == Samples((first, second))
    assert Samples.of(slope).with_one_more(first) == Samples((first,))
    assert Samples.of(first).with_one_more(slope) == Samples((slope,))
    assert Samples.of(slope).method == "host_slope"


@given(replays(), replays())
def test_a_confirmation_is_stored_beside_the_samples_and_never_among_them(first: Replays, again: Replays) -> None:
    stored = render_samples(Samples.of(first), Samples.of(again))
    assert parse_samples(stored) == Taken(Samples.of(first), Samples.of(again))
    assert parse_samples(render_samples(Samples.of(first))) == Taken(Samples.of(first), None)


def test_only_sides_that_every_attempt_measured_are_compared() -> None:
    release = Release(few_ns=10, many_ns=20)
    more = Attempt(few=1, many=2, pairs=(({"candidate": release, "eager": release, "promoted": release},),))
    less = Attempt(few=1, many=2, pairs=(({"candidate": release, "eager": release},),))
    assert Samples((more, less)).sides == ("candidate", "eager")


@given(st.lists(attempts(), min_size=1, max_size=3).map(tuple))
def test_samples_are_read_back_as_they_were(made: tuple[Attempt, ...]) -> None:
    samples = Samples(made)
    stored = render_samples(samples)
    again = parse_samples(stored).samples
    assert again == samples
    assert render_samples(again) == stored
    assert protocol_of(stored) == SLOPE
    taken_before = stored.replace(b"host_slope.v2", b"host_slope.v1")
    assert parse_samples(taken_before).samples == samples
    assert protocol_of(taken_before) != SLOPE
    assert again.sides == SIDES
    for side in SIDES:
        assert again.per_call_ns(side) == samples.per_call_ns(side)
        assert len(samples.per_call_ns(side)) == sum(len(attempt.pairs) for attempt in made)


@given(st.lists(attempts(), min_size=1, max_size=2).map(tuple))
def test_samples_are_usable_exactly_if_every_slope_but_the_paths_own_is_above_zero(made: tuple[Attempt, ...]) -> None:
    samples = Samples(made)
    timed = [side for side in SIDES if side != "harness"]
    slopes = [time for side in timed for rounds in samples.per_call_ns(side) for time in rounds]
    assert samples.usable == (min(slopes) > 0)


def test_samples_of_another_protocol_are_not_read() -> None:
    for protocol in (None, "host_slope.v0", "graph_replay.v0", 1):
        stored = orjson.dumps({"protocol": protocol, "attempts": []} if protocol else {})
        with pytest.raises(BlobCorrupt, match=r"expected 'host_slope\.v2' or 'graph_replay\.v3'"):
            parse_samples(stored)


def test_the_constant_of_the_path_falls_out_of_the_time_per_call() -> None:
    path_ns, call_ns = 7_000, 300
    release = Release(few_ns=path_ns, many_ns=path_ns + 8 * call_ns)
    attempt = Attempt(few=2, many=10, pairs=(({"candidate": release},) * 3,))
    assert Samples((attempt, attempt)).per_call_ns("candidate") == [[300.0] * 3] * 2
