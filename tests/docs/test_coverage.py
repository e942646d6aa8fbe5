"""What is said of the intervals' coverage: computed from raw samples, and the same on every page."""

import math
import runpy
from fractions import Fraction

import pytest

from tests.docs.markdown import ROOT

SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "coverage.py"))


@pytest.fixture(scope="module")
def told() -> dict[str, float]:
    found: dict[str, float] = SCRIPT["told"](list(SCRIPT["controls"](ROOT)))
    return found


def test_the_pages_say_what_the_samples_say(told: dict[str, float]) -> None:
    share = f"{told['share']:.0%}".replace("%", " %")
    counts = f"{told['controls']} controls of the ledger that ships, {told['held']} intervals hold 1: {share}"
    measurement = (ROOT / "docs" / "measurement.md").read_text(encoding="utf-8")
    assert counts in measurement
    assert f"the chance of so few is {told['p_at_most_so_many']:.1%}".replace("%", " %") in measurement
    assert f"in {told['control_slower']} of {told['controls']} measurements" in measurement
    assert f"as uneven is {told['p_so_one_sided']:.1%}".replace("%", " %") in measurement
    assert f"moved out by {told['needed_per_cent']:.2f} %" in measurement
    assert f"with {told['largest_miss_per_cent']:.1f} %, all" in measurement
    registry = (ROOT / "docs" / "reference" / "registry.md").read_text(encoding="utf-8")
    assert f"is 1, {told['held']} intervals hold it, {told['share']:.0%}" in registry


def test_a_wider_interval_by_what_is_needed_holds_the_truth_in_95_of_100(told: dict[str, float]) -> None:
    needed = told["needed_per_cent"] / 100
    held = [one.miss <= needed * (1 + 1e-12) for one in SCRIPT["controls"](ROOT)]
    assert sum(held) / len(held) >= 0.95


def test_a_miss_is_how_far_the_interval_is_from_one() -> None:
    control = SCRIPT["Control"]
    found = [control(number, (0.0, 0.0), 0.0) for number in range(18)]
    found += [control(18, (-0.2, -0.1), 0.1), control(19, (0.3, 0.2), 0.2)]
    told = SCRIPT["told"](found)
    assert (told["held"], told["share"], told["control_slower"]) == (18, 0.9, 1)
    assert (told["needed_per_cent"], told["largest_miss_per_cent"]) == (10.0, 20.0)
    with pytest.raises(ValueError, match="no control"):
        SCRIPT["told"]([])


def test_the_tail_is_a_binomials() -> None:
    exact = sum(Fraction(math.comb(6, k), 64) for k in range(3))
    assert SCRIPT["at_most"](2, 6, 0.5) == pytest.approx(float(exact))
    assert SCRIPT["at_most"](6, 6, 0.3) == pytest.approx(1)
