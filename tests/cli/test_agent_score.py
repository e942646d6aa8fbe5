"""forge agent score: every task of a suite counts, those that can't be opened and those without an answer too."""

import json
from pathlib import Path

import pytest

from forge.app.solve.score import ScoredTask, read_suite, summed
from forge.domain.budget import Amounts
from forge.errors import UsageError
from tests.app.model_server import Say, serving
from tests.cli.asking import ask, ledger_stands

SUITE = [{"op": "fused_add_rmsnorm", "shape": "batch=4,hidden_size=256"}, {"op": "no_such_op", "shape": "batch=4"}]


def test_a_suite_counts_every_task_and_every_cost(empty: Path, tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    with serving(*[Say("I'd rather not.")] * 8) as server:
        found = ask(
            *("agent", "score", tmp_path / "suite.json", "--author", "model", "--model", "openai:m"),
            *("--base-url", f"{server.url}/v1", "--price", "openai:m=1,1", "--tokens", 10**9, "--dollars", 1000),
            *("--json", "--home", empty),
        )
        assert len(server.requests) == 4
    assert found.status == 0, found
    document = found.document
    assert document is not None
    done, unknown = document["tasks"]
    assert (done["correct"], done["candidates"], done["failure"]) == (False, 0, None)
    assert "unknown operation 'no_such_op'" in unknown["failure"]
    total = document["score"]
    assert (total["tasks"], total["correctness_rate"], total["fast_1"], total["promoted"]) == (2, 0, 0, 0)
    assert (total["used"]["tokens"], total["used"]["micro_dollars"]) == (600, 600)
    assert total["per_promoted_kernel"] is None
    assert ledger_stands(empty)


def test_shares_are_of_all_tasks() -> None:
    spent = Amounts(tokens=10, micro_dollars=4)
    rows = [
        ScoredTask("a", "t", "s", 3, True, 1.6, ("k1",), spent, None),
        ScoredTask("b", "t", "s", 2, True, 0.9, (), spent, None, simulated=True),
        ScoredTask("c", "t", "s", 1, False, 0.0, (), spent, None),
        ScoredTask("d", None, None, 0, False, 0.0, (), Amounts(), "it can't be opened"),
    ]
    total = summed(rows)
    assert (total["correctness_rate"], total["fast_1"], total["fast_1.5"], total["fast_2"]) == (0.5, 0.25, 0.25, 0)
    assert total["simulated"] == 1
    each = total["per_promoted_kernel"]
    assert isinstance(each, dict)
    assert (each["tokens"], each["micro_dollars"]) == (30, 12)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[{"op": 1, "shape": "x"}]', "[]", '[{"op": "rmsnorm"}]', "[" * 9999]
)
def test_a_bad_suite_is_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "suite.json").write_text(text)
    with pytest.raises(UsageError, match="the suite"):
        read_suite(tmp_path / "suite.json")
