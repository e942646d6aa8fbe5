"""The performance page is what its generator makes of the figures beside it."""

import json
import runpy

from tests.docs.markdown import ROOT


def test_the_page_and_its_plot_are_those_of_the_figures():
    made = runpy.run_path(str(ROOT / "benchmarks" / "page.py"))
    result = json.loads((ROOT / "docs" / "performance.json").read_text())
    assert (ROOT / "docs" / made["PAGE"]).read_text() == made["page"](result), "write it anew: make performance"
    assert (ROOT / "docs" / made["PLOT"]).read_text() == made["plot"](result), "write it anew: make performance"


def test_a_missed_goal_is_said():
    made = runpy.run_path(str(ROOT / "benchmarks" / "page.py"))
    result = json.loads((ROOT / "docs" / "performance.json").read_text())
    assert made["page"](result).count("**missed**") == missed(result)


def missed(found: object) -> int:
    """How many figures say so, wherever they stand."""
    if isinstance(found, list):
        return sum(map(missed, found))
    if not isinstance(found, dict):
        return 0
    return (found.get("reached") is False) + sum(map(missed, found.values()))
