"""What feedback is worth: the recorded figures of the mechanical repairer, and one mutant through the real gates."""

import json
import random
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_recorded_repairs_take_at_most_a_third_of_the_rounds_and_the_page_says_them() -> None:
    recorded = json.loads((ROOT / "docs" / "repair.json").read_text())
    rows = recorded["rows"]
    assert len(rows) == recorded["mutants"] == 40
    with_feedback, blind = (sum(one[name] for one in rows) / len(rows) for name in ("with_feedback", "blind"))
    assert (round(with_feedback, 6), round(blind, 6)) == (recorded["mean_with_feedback"], recorded["mean_blind"])
    assert 3 * with_feedback <= blind
    page = (ROOT / "docs" / "how-to" / "use-your-model.md").read_text()
    assert f"{with_feedback:.1f} rounds with the feedback document, and {blind:.1f} with pass or fail alone" in page


@pytest.mark.slow(first=True)
@pytest.mark.usefixtures("walls", "short_series")
def test_a_wrong_edit_is_undone_in_few_rounds_with_feedback() -> None:
    repair = runpy.run_path(str(ROOT / "benchmarks" / "repair.py"))
    wrong = repair["KERNEL"].replace("x[i] + residual[i]", "x[i] - residual[i]", 1)
    assert wrong != repair["KERNEL"]
    assert any(one.applied(wrong) == repair["KERNEL"] for one in repair["edits"](wrong))
    assert repair["told"](wrong, random.Random(1)) <= 4
