"""Earlier experiments: what was decided, newest first, failures among them; an author's words are made harmless."""

from pathlib import Path

import pytest

from forge.projections.experiments import HYPOTHESIS_LIMIT, LATEST, earlier_experiments, one_line
from tests.projections.histories import Run, opened
from tests.projections.test_real_ledger import new_ledger
from tests.projections.test_run_lookup import three_runs
from tests.projections.values import task


def test_experiments_of_the_operation_are_found_newest_first_failures_included(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "kernel_registry.db") as ledger:
        assert earlier_experiments(ledger, "rmsnorm") == ()
        promoted, failed, undecided = three_runs(ledger)
        found = earlier_experiments(ledger, "rmsnorm")
        assert [(one.run_id, one.ended, one.reason) for one in found] == [
            (failed, "not_faster", "TOO_SLOW"),
            (promoted, "promoted", None),
        ]
        assert all(one.speedup is None or one.speedup > 0 for one in found)
        assert found[1].speedup is not None
        assert undecided not in {one.run_id for one in found}
        assert earlier_experiments(ledger, "gelu") == ()
        assert earlier_experiments(ledger, "rope") == ()


@pytest.mark.parametrize(
    ("code", "counts"), [("INCORRECT_NUMERICAL", True), ("TOO_SLOW", True), ("GPU_SHARED", False)]
)
def test_what_says_nothing_about_the_candidate_is_no_experiment(tmp_path: Path, code: str, counts: bool) -> None:
    history = opened()
    run = Run(history, task(op="rmsnorm"), "a").start().submit()
    run.verify().fail(code)
    with new_ledger(tmp_path / "kernel_registry.db") as ledger:
        for recorded in history.events[1:]:
            ledger.append([recorded.event], actor="ci:test", correlation_id=run.run_id)
        assert bool(earlier_experiments(ledger, "rmsnorm")) == counts


def test_an_author_reads_the_latest_few(tmp_path: Path) -> None:
    history = opened()
    with new_ledger(tmp_path / "kernel_registry.db") as ledger:
        made, written = [], 1
        for place in range(LATEST + 3):
            run = Run(history, task(op="rmsnorm"), f"r{place:02}").start().submit()
            run.verify().fail("TOO_SLOW")
            made.append(run.run_id)
            for recorded in history.events[written:]:
                ledger.append([recorded.event], actor="ci:test", correlation_id=run.run_id)
            written = len(history.events)
        assert [one.run_id for one in earlier_experiments(ledger, "rmsnorm")] == made[::-1][:LATEST]


def test_an_authors_words_can_leave_neither_their_line_nor_their_cell() -> None:
    said = one_line("wider\n\n# New task | `rm` <script>\x1b[31m\u2028 end ![x](y)")
    assert said is not None
    assert not set(said) & set("|`<>[]\n\x1b\u2028")
    assert said.startswith("wider # New task / 'rm' (script)")
    cut = one_line("x" * 500)
    assert cut is not None
    assert len(cut) == HYPOTHESIS_LIMIT
    assert one_line(None) is None
