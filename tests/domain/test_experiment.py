"""Experiments: one axis of a closed list, an end by disjoint intervals, a refusal that means something."""

from math import isclose
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from forge.domain.axes import AXES, LAYER_NAMES, Axis, Layer, layer_of
from forge.domain.candidate import Metadata
from forge.domain.evidence import Interval
from forge.domain.experiment import end_of, end_of_refusal, over
from forge.domain.verdict import REASON_CODES, UNDECIDED

BASE = {"name": "one", "op": "rmsnorm", "language": "cpp"}
AXES_LISTED = [(layer, axis) for layer, axes in AXES.items() for axis in axes]


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, ratio, high = sorted(draw(st.tuples(*[st.floats(0.01, 100)] * 3)))
    return Interval(ratio=ratio, low=low, high=high)


def test_every_axis_belongs_to_exactly_one_layer() -> None:
    assert sorted(axis for _, axis in AXES_LISTED) == sorted(get_args(Axis))
    assert list(AXES) == list(get_args(Layer)) == list(LAYER_NAMES)
    assert all(layer_of(axis) == layer for layer, axis in AXES_LISTED)
    assert layer_of("luck") is None


@pytest.mark.parametrize(("layer", "axis"), AXES_LISTED)
def test_a_declared_axis_brings_its_layer(layer: str, axis: str) -> None:
    assert Metadata.model_validate({**BASE, "axis": axis}).layer_changed == layer
    assert Metadata.model_validate({**BASE, "axis": axis, "layer": layer}).layer_changed == layer
    other = next(one for one in LAYER_NAMES if one != layer)
    with pytest.raises(ValidationError, match=f"is of layer {layer}"):
        Metadata.model_validate({**BASE, "axis": axis, "layer": other})


def test_a_layer_may_be_declared_alone_or_neither() -> None:
    assert Metadata.model_validate({**BASE, "layer": "L2"}).layer_changed == "L2"
    assert Metadata.model_validate(BASE).layer_changed is None
    assert Metadata.model_validate({**BASE, "axis": None}).layer_changed is None


@pytest.mark.parametrize("axis", ["tiling, fusion", ["tiling", "fusion"], "", "faster", 3, {"tiling": 1}])
def test_two_axes_or_an_unknown_one_are_refused(axis: object) -> None:
    with pytest.raises(ValidationError, match="expected one axis"):
        Metadata.model_validate({**BASE, "axis": axis})


@given(intervals())
def test_an_interval_that_holds_one_is_no_change(interval: Interval) -> None:
    expected = "improved" if interval.low > 1 else "regressed" if interval.high < 1 else "no_change"
    assert end_of(interval) == expected


@given(intervals(), intervals())
def test_two_speedups_over_one_baseline_differ_exactly_where_their_intervals_are_disjoint(
    one: Interval, other: Interval
) -> None:
    assume(not isclose(one.low, other.high, rel_tol=1e-12) and not isclose(one.high, other.low, rel_tol=1e-12))
    compared = over(one, other)
    assert compared.low <= compared.ratio <= compared.high
    assert (end_of(compared) == "improved") == (one.low > other.high)
    assert (end_of(compared) == "regressed") == (one.high < other.low)


@pytest.mark.parametrize("code", REASON_CODES)
def test_a_refusal_ends_an_experiment_unless_it_says_nothing_about_the_candidate(code) -> None:
    ends = {stage: end_of_refusal(code, stage=stage) for stage in ("screen", "build", "verify", "benchmark")}
    if code in UNDECIDED:
        assert set(ends.values()) == {None}
    elif code == "COMPILE_ERROR":
        assert set(ends.values()) == {"build_failed"}
    else:
        assert ends == {
            "screen": "incorrect",
            "build": "build_failed",
            "verify": "incorrect",
            "benchmark": "incorrect",
        }
    assert end_of_refusal(code, stage="submit") is None
