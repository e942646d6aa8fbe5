"""Raw samples of graph replays: a time per call, from windows of any length; too many left out are no verdict."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.errors import EnvironmentUnfit
from forge.lab.timing import blocks, clock_envelope
from forge.lab.timing.blocks import ROUNDS, Blocks
from forge.lab.timing.graph_replay import ReplaySamples
from tests.lab.test_blocks import DEVICE, HOT, QUIET, states

QUIET_PAIR, HALF_PAIR, LOST_PAIR = (QUIET,) * 6, (QUIET, QUIET, QUIET, HOT, QUIET, QUIET), (HOT,) * 6


def attempt(pairs: tuple[tuple[dict[str, int], ...], ...], calls: dict[str, int]) -> ReplaySamples:
    return ReplaySamples(
        calls=calls, pairs=pairs, host_ratio=(1.0,), sets=2, set_bytes=8, states=(), blocks=1, dropped=0, device_ns=1
    )


def test_a_time_per_call_is_the_window_over_its_own_number_of_calls() -> None:
    one, two = {"candidate": 1000, "eager": 6000}, {"candidate": 1200, "eager": 5000}
    found = attempt(((one, two), (two,)), {"eager": 20, "candidate": 10})
    assert found.sides == ("candidate", "eager")
    assert found.per_call_ns("candidate") == [[100.0, 120.0], [120.0]]
    assert found.per_call_ns("eager") == [[300.0, 250.0], [250.0]]
    with pytest.raises(KeyError):
        found.per_call_ns("vendor")


@given(
    windows=st.lists(st.lists(st.integers(1, 2**53), min_size=1, max_size=4), min_size=1, max_size=4),
    calls=st.integers(1, 4096),
)
def test_every_pair_and_round_is_there_and_nothing_is_averaged(windows: list[list[int]], calls: int) -> None:
    found = attempt(tuple(tuple({"candidate": ns} for ns in pair) for pair in windows), {"candidate": calls})
    assert found.per_call_ns("candidate") == [[ns / calls for ns in pair] for pair in windows]


@pytest.mark.parametrize(
    ("slope_ns", "by_events_ns", "window_ns", "left_ns", "agree"),
    [
        (
            91_042,
            88_305,
            123_104,
            0,
            True,
        ),  # on an H200: a short window, and a graph's own start between two
        (236_800, 233_700, 236_592, 0, True),  # likewise
        (970_000, 1_000_000, 1_000_000, 0, True),
        (969_000, 1_000_000, 1_000_000, 0, False),
        (1_035_000, 1_000_000, 1_000_000, 0, True),
        (1_036_000, 1_000_000, 1_000_000, 0, False),
        (1_000_000, 1_000_000, 965_000, 0, False),
        (100_000, 50_000, 100_000, 0, False),
        (238_240, 236_115, 221_984, 0, False),
        (242_026, 239_867, 229_872, 0, False),
        (242_026, 239_867, 229_872, 7_200, True),  # on an H200: a window that leaves 34 MB in the cache
        (1_036_000, 1_000_000, 1_000_000, 50_000, False),
    ],
)
def test_the_two_clocks_agree_within_the_envelope_and_a_graphs_start(
    slope_ns: float, by_events_ns: float, window_ns: float, left_ns: float, agree: bool
) -> None:
    said = clock_envelope.clocks_agree(
        slope_ns, by_events_ns, window_ns, clock_envelope.ENVELOPE, cached_write_ns=left_ns
    )
    assert said is agree


@dataclass
class Measured:
    """What `require_few_dropped` looks at in a pair; the pair itself needs a GPU."""

    blocks: Blocks


def pair(monkeypatch: pytest.MonkeyPatch, said: tuple[object, ...]) -> Measured:
    """Five blocks between six states."""
    states(monkeypatch, *said)
    found = Blocks(DEVICE)
    for number in range(5 * ROUNDS):
        found.add({"candidate": number + 1})
    found.close()
    return Measured(found)


@pytest.mark.parametrize(
    ("pairs", "most_dropped", "quiet"),
    [
        ((QUIET_PAIR,), 0.0, True),
        ((QUIET_PAIR, HALF_PAIR), 0.2, True),
        ((QUIET_PAIR, HALF_PAIR), 0.19, False),
        ((HALF_PAIR,), 0.4, True),
        ((QUIET_PAIR, LOST_PAIR), 0.5, False),
        ((LOST_PAIR,), 0.5, False),
    ],
)
def test_too_many_blocks_left_out_or_all_of_one_pair_are_no_verdict(
    pairs: tuple[tuple[object, ...], ...], most_dropped: float, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [pair(monkeypatch, said).blocks for said in pairs]
    if quiet:
        blocks.require_few_dropped(made, most_dropped)
        return
    with pytest.raises(EnvironmentUnfit, match=r"blocks can't be used \(clocks held back: hardware_thermal\)"):
        blocks.require_few_dropped(made, most_dropped)
