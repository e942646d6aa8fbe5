"""Raw samples: what is stored is what was measured, and is read back as it was."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.errors import BlobCorrupt
from forge.lab.timing import Attempt, Release
from forge.pipeline.samples import Samples, parse_samples, render_samples

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


@given(st.lists(attempts(), min_size=1, max_size=3).map(tuple))
def test_samples_are_read_back_as_they_were(made: tuple[Attempt, ...]) -> None:
    samples = Samples(made)
    stored = render_samples(samples)
    again = parse_samples(stored)
    assert again == samples
    assert render_samples(again) == stored
    assert again.sides == SIDES
    for side in SIDES:
        assert again.per_call_ns(side) == samples.per_call_ns(side)
        assert len(samples.per_call_ns(side)) == sum(len(attempt.pairs) for attempt in made)


@given(st.lists(attempts(), min_size=1, max_size=2).map(tuple))
def test_samples_are_usable_exactly_if_every_slope_is_above_zero(made: tuple[Attempt, ...]) -> None:
    samples = Samples(made)
    slopes = [time for side in SIDES for rounds in samples.per_call_ns(side) for time in rounds]
    assert samples.usable == (min(slopes) > 0)


def test_samples_of_another_protocol_are_not_read() -> None:
    for stored in (b"{}", orjson.dumps({"protocol": "host_slope.v0", "attempts": []})):
        with pytest.raises(BlobCorrupt, match=r"expected 'host_slope\.v1'"):
            parse_samples(stored)


def test_the_constant_of_the_path_falls_out_of_the_time_per_call() -> None:
    path_ns, call_ns = 7_000, 300
    release = Release(few_ns=path_ns, many_ns=path_ns + 8 * call_ns)
    attempt = Attempt(few=2, many=10, pairs=(({"candidate": release},) * 3,))
    assert Samples((attempt, attempt)).per_call_ns("candidate") == [[300.0] * 3] * 2
