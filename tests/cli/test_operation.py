"""`forge op`: every operation with its mutant score, and the answers it was tried on, without torch."""

import subprocess
import sys

from forge.operations.scores import mutant_scores
from tests.cli.asking import ask


def test_the_list_says_how_many_mutants_each_operation_refuses() -> None:
    listed = {one["op"]: one["mutants"] for one in ask("op", "list", "--json").document}
    scores = mutant_scores()
    assert listed == {name: {"killed": score.killed, "total": len(score.mutants)} for name, score in scores.items()}
    rmsnorm = listed["rmsnorm"]
    assert f"{rmsnorm['killed']}/{rmsnorm['total']}" in ask("op", "list").out


def test_an_operation_is_shown_with_its_mutants_by_name_and_what_it_updates() -> None:
    shown = ask("op", "show", "kv_cache_append", "--json").document
    assert shown["updates"] == ["key_cache", "value_cache"]
    assert "no slot is the last" in shown["mutants"]["names"]
    assert len(shown["mutants"]["names"]) == shown["mutants"]["total"]
    assert shown["mutants"]["survivors"] == {}
    assert shown["honest"]["accepted"] == shown["honest"]["total"] >= 4


def test_the_list_needs_no_torch() -> None:
    listing = (
        "import sys, contextlib, io\n"
        "from forge.cli.operation import list_operations\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n    list_operations(as_json=True)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", listing], check=True)
