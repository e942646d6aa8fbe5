"""Raw samples: what is stored is what was measured, and is read back as it was."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.device import DeviceState
from forge.domain.protocol import REPLAY, SLOPE
from forge.errors import BlobCorrupt
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.slope import SlopeSamples
from forge.pipeline.samples import Samples, Taken, parse_samples, protocol_of, render_samples

SIDES = ("candidate", "control", "eager", "harness")
times = st.integers(min_value=1, max_value=2**53)


@st.composite
def attempts(draw: st.DrawFn) -> SlopeSamples:
    rounds = draw(st.integers(1, 4))
    measured = st.fixed_dictionaries(dict.fromkeys(SIDES, times))
    pairs = st.lists(st.lists(measured, min_size=rounds, max_size=rounds).map(tuple), min_size=1, max_size=3)
    return SlopeSamples(calls=draw(st.integers(1, 200)), pairs=tuple(draw(pairs)))


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
def replays(draw: st.DrawFn) -> ReplaySamples:
    """Pairs may have lost different blocks, so they needn't have the same number of rounds."""
    measured = st.fixed_dictionaries(dict.fromkeys(SIDES, times))
    pairs = draw(st.lists(st.lists(measured, min_size=1, max_size=4).map(tuple), min_size=1, max_size=3))
    dropped = draw(st.integers(0, 3))
    return ReplaySamples(
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
def test_replays_are_read_back_as_they_were(made: tuple[ReplaySamples, ...]) -> None:
    samples = Samples(made)
    stored = render_samples(samples)
    again = parse_samples(stored).samples
    assert again == samples
    assert render_samples(again) == stored
    assert protocol_of(stored) == REPLAY
    for earlier in (b"graph_replay.v1", b"graph_replay.v2", b"graph_replay.v3"):
        taken_before = stored.replace(b"graph_replay.v4", earlier)
        assert parse_samples(taken_before).samples == samples
        assert protocol_of(taken_before) != REPLAY
    assert (again.method, again.sides, again.usable) == ("launch_plan", SIDES, True)
    assert len(again.per_call_ns("candidate")) == sum(len(attempt.pairs) for attempt in made)


@given(attempts(), replays(), replays())
def test_a_second_attempt_adds_to_the_first_unless_it_was_measured_in_another_way(
    slope: SlopeSamples, first: ReplaySamples, second: ReplaySamples
) -> None:
    assert Samples.of(slope).with_one_more(slope) == Samples((slope, slope))
    assert Samples.of(first).with_one_more(second) == Samples((first, second))
    assert Samples.of(slope).with_one_more(first) == Samples((first,))
    assert Samples.of(first).with_one_more(slope) == Samples((slope,))
    assert Samples.of(slope).method == "host_slope"


@given(replays(), replays())
def test_a_confirmation_is_stored_beside_the_samples_and_never_among_them(
    first: ReplaySamples, again: ReplaySamples
) -> None:
    stored = render_samples(Samples.of(first), Samples.of(again))
    assert parse_samples(stored) == Taken(Samples.of(first), Samples.of(again))
    assert parse_samples(render_samples(Samples.of(first))) == Taken(Samples.of(first), None)


def test_only_sides_that_every_attempt_measured_are_compared() -> None:
    more = SlopeSamples(calls=2, pairs=(({"candidate": 20, "eager": 20, "promoted": 20},),))
    less = SlopeSamples(calls=2, pairs=(({"candidate": 20, "eager": 20},),))
    assert Samples((more, less)).sides == ("candidate", "eager")


@given(st.lists(attempts(), min_size=1, max_size=3).map(tuple))
def test_samples_are_read_back_as_they_were(made: tuple[SlopeSamples, ...]) -> None:
    samples = Samples(made)
    stored = render_samples(samples)
    again = parse_samples(stored).samples
    assert again == samples
    assert render_samples(again) == stored
    assert protocol_of(stored) == SLOPE
    assert again.sides == SIDES
    for side in SIDES:
        assert again.per_call_ns(side) == samples.per_call_ns(side)
        assert len(samples.per_call_ns(side)) == sum(len(attempt.pairs) for attempt in made)


@given(st.lists(attempts(), min_size=1, max_size=2).map(tuple))
def test_samples_are_usable_exactly_if_every_slope_but_the_paths_own_is_above_zero(
    made: tuple[SlopeSamples, ...],
) -> None:
    samples = Samples(made)
    timed = [side for side in SIDES if side != "harness"]
    slopes = [time for side in timed for rounds in samples.per_call_ns(side) for time in rounds]
    assert samples.usable == (min(slopes) > 0)


def test_samples_of_another_protocol_are_not_read() -> None:
    for protocol in (None, "host_slope.v0", "graph_replay.v0", 1):
        stored = orjson.dumps({"protocol": protocol, "attempts": []} if protocol else {})
        with pytest.raises(BlobCorrupt, match=r"expected 'host_slope\.v4' or 'graph_replay\.v4'"):
            parse_samples(stored)


def test_what_the_empty_guest_takes_is_subtracted_from_every_side_but_its_own() -> None:
    rounds = tuple(
        {"candidate": 7_000 + 8 * ns, "harness": path} for ns, path in ((300, 7_000), (310, 9_000), (290, 1))
    )
    samples = Samples.of(SlopeSamples(calls=8, pairs=(rounds,)))
    assert samples.per_call_ns("candidate") == [[300.0, 310.0, 290.0]]
    assert samples.per_call_ns("harness") == [[875.0, 1125.0, 0.125]]


@pytest.mark.parametrize("protocol", ["host_slope.v1", "host_slope.v2"])
def test_earlier_slopes_are_read_as_what_was_taken_beyond_their_own_shorter_releases(protocol: str) -> None:
    rounds = [{"candidate": [7_000, 7_000 + 8 * ns], "harness": [1, 2]} for ns in (300, 310)]
    attempt = {"few_calls": 2, "many_calls": 10, "pairs": [rounds]}
    stored = orjson.dumps({"protocol": protocol, "attempts": [attempt]})
    samples = parse_samples(stored).samples
    assert samples.per_call_ns("candidate") == [[300.0, 310.0]]
    assert samples.sides == ("candidate",)
    assert protocol_of(stored) != SLOPE
