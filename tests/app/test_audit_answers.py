"""What the audit answers of a small history whose every number is known."""

import csv
import io
import json
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.app.audit import authors, free_sql, histories, speed, stale_evidence
from forge.app.audit.answer import Answer
from forge.app.audit.files import as_csv, write_parquet
from forge.app.plain_events import OfWorkspace
from forge.app.user.home import LEDGER_FILE
from forge.app.workspace import Workspace
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.verdict import Reason
from forge.errors import UnknownName, UsageError
from forge.events import CandidateRejected, PlanAccepted, PromptRendered
from forge.events.plan import ChosenSkill
from forge.ledger.store import Ledger
from forge.projections.sql_surface import SURFACE
from tests.projections.histories import LEDGER_ID, Run, invalidate, opened, promoted, revoke
from tests.projections.values import captured, digest, environment, task
from tests.projections.values import workload as timed_at

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


def workspace_of(history, home: Path) -> Workspace:
    """A workspace whose ledger holds these events, one second apart."""
    moments = iter(MOMENT + timedelta(seconds=number) for number in range(10_000))
    numbers = iter(range(1, 10_000))
    (home / "forge_runs").mkdir(parents=True)
    (home / "kernel_registry").mkdir()
    with Ledger.create(
        home / LEDGER_FILE,
        ledger_id=LEDGER_ID,
        origin="test",
        forge_version="0.1.0",
        now=lambda: next(moments),
        new_id=lambda: f"0190aaaa-0000-7000-8000-{next(numbers):012x}",
    ) as ledger:
        ledger.append([one.event for one in history.events[1:]], actor="ci:test", correlation_id="run")
    workspace = Workspace.open(home)
    for name in "abcdef":
        for path in REQUIRED_FILES:
            workspace.blobs.put(str((name, path)).encode())
    return workspace


def past():
    """One kernel that stands, one too slow, one wrong, one revoked, one withdrawn, one never handed in."""
    history = opened()
    first = Run(history, task(), "a").start()
    ids = {"task_id": first.task.task_id, "run_id": first.run_id}
    skills = tuple(ChosenSkill(id=name, sha256=digest(name), provider="embedded", why="x") for name in ("one", "two"))
    history.add(PlanAccepted(**ids, skills=skills, queries=("q",), bottleneck_prior="memory", earlier_experiments=0))
    digests = dict.fromkeys(("template_sha256", "rendered_sha256", "variables_sha256"), digest("t"))
    history.add(PromptRendered(**ids, template="brief", template_version=3, **digests))
    first.submit().claim(3.0, "overstated").verify().benchmark(ratio=1.5).promote()
    Run(history, task(), "b").start().submit().claim(2.0).verify().fail("TOO_SLOW")
    wrong = Run(history, task(op="softmax"), "c").start().submit()
    reason = Reason(code="INCORRECT_NUMERICAL", message="=1+1 in row 3")
    history.add(CandidateRejected(**wrong.ids, stage="verify", reason=reason))
    revoke(history, promoted(history, name="d", wanted=task(op="layernorm"), ratio=9.0))
    withdrawn = Run(history, task(op="gelu_mul"), "e").start().submit().verify().benchmark(ratio=4.0)
    withdrawn.promote()
    invalidate(history, withdrawn.benchmark_seq)
    Run(history, task(op="rope"), "f").start()
    return history


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with workspace_of(past(), tmp_path_factory.mktemp("audit") / "home") as found:
        yield found


def rows(answer: Answer) -> list[dict]:
    return answer.document()["rows"]


def test_fast_p_counts_every_task_that_was_attempted(workspace):
    answer = speed.fast_p(workspace, levels=(0, 1, 1.5, 2))
    # attempted: rmsnorm, softmax (wrong), layernorm (revoked), gelu_mul (withdrawn); rope was never handed in
    assert [(row["p"], row["tasks_faster"], row["tasks_attempted"]) for row in rows(answer)] == [
        (0, 2, 4),
        (1, 1, 4),
        (1.5, 0, 4),
        (2, 0, 4),
    ]
    assert answer.more == {"attempted": 4, "verified": 2, "timed": 1, "simulated_only": 0}
    assert "Every other task counts as not faster" in answer.notes[0]


@pytest.mark.parametrize("levels", [(), (-1,), (float("nan"),), (float("inf"),)])
def test_fast_p_wants_levels_that_are_numbers(levels, workspace):
    with pytest.raises(UsageError, match="bad levels"):
        speed.fast_p(workspace, levels=levels)


@pytest.mark.slow
@given(levels=st.lists(st.floats(0, 100), min_size=2, max_size=6))
def test_fast_p_never_rises_with_p_and_the_lower_end_never_exceeds_it(levels, workspace):
    found = rows(speed.fast_p(workspace, levels=levels))
    shares = [row["fast_p"] for row in found]
    assert shares == sorted(shares, reverse=True)
    assert all(0 <= row["fast_p_by_lower_end"] <= row["fast_p"] <= 1 for row in found)


def test_a_leaderboard_has_worst_typical_and_best_with_how_many(workspace):
    (slot,) = rows(speed.leaderboard(workspace))
    assert (slot["op"], slot["attempted"], slot["n"], slot["standing"]) == ("rmsnorm", 2, 2, 1)
    assert (slot["worst"], slot["typical"], slot["best"]) == (0.9, pytest.approx(1.2), 1.5)
    assert rows(speed.leaderboard(workspace, baseline="vendor")) == []


def test_a_name_that_the_history_never_had_is_refused(workspace):
    with pytest.raises(UnknownName, match="rmsnorm"):
        speed.leaderboard(workspace, wanted={"op": "rmsnrom"})
    with pytest.raises(UnknownName, match="unknown author"):
        authors.experiments(workspace, limit=5, wanted={"author": "nobody"})


def test_a_kernel_that_is_slower_on_another_driver_is_a_regression(tmp_path):
    history = opened()
    promoted(history, name="a", ratio=1.5)
    again = Run(history, task(), "a").start().submit().verify()
    history.add(captured("h200", driver="590.2"))
    found = environment("h200", driver="590.2")
    measured = timed_at(task().shape, median_ns=2000.0, ratio=1.1)
    event = again.benchmark(ratio=1.1).history.events[-1].event
    history.events.pop()
    history.add(event.model_copy(update={"env_sha256": found.env_sha256, "workloads": (measured,)}))
    with workspace_of(history, tmp_path / "home") as workspace:
        (row,) = rows(speed.regressions(workspace, slower=1.05))
        shown = histories.history(OfWorkspace(workspace), op="rmsnorm", gpu="h200", limit=10)
    assert (row["kind"], row["changed"], row["change"]) == ("machine", "driver 580.1 -> 590.2", "lower")
    assert (row["earlier"], row["later"], row["slower"]) == (1.5, 1.1, 2.0)
    assert shown.column("driver") == ["580.1", "590.2"]


def test_intervals_that_overlap_are_no_regression(tmp_path):
    history = opened()
    promoted(history, name="a", ratio=1.5)
    again = Run(history, task(), "a").start().submit().verify()
    history.add(captured("h200", driver="590.2"))
    found = environment("h200", driver="590.2")
    event = again.benchmark(ratio=1.499).history.events[-1].event
    history.events.pop()
    history.add(event.model_copy(update={"env_sha256": found.env_sha256}))
    with workspace_of(history, tmp_path / "home") as workspace:
        assert rows(speed.regressions(workspace, slower=1.05)) == []
        (row,) = rows(speed.regressions(workspace, slower=1.05, everything=True))
    assert row["change"] == "not told apart"


def test_a_withdrawn_measurement_gives_way_to_the_one_before(tmp_path):
    history = opened()
    promoted(history, name="a", ratio=1.5)
    again = Run(history, task(), "a").start().submit().verify().benchmark(ratio=3.0)
    with workspace_of(history, tmp_path / "one") as workspace:
        assert [row["best"] for row in rows(speed.leaderboard(workspace))] == [3.0]
    invalidate(history, again.benchmark_seq)
    with workspace_of(history, tmp_path / "two") as workspace:
        assert [row["best"] for row in rows(speed.leaderboard(workspace))] == [1.5]


def test_what_stood_on_a_withdrawn_benchmark_is_named(workspace):
    (row,) = rows(stale_evidence.invalidated(workspace))
    assert (row["why"], row["status"]) == ("clock was wrong", "evidence_invalid")
    assert row["kernel_id"].startswith("triton_gelumul") or "gelu_mul" in row["kernel_id"]


def test_stale_is_what_is_old_or_from_elsewhere(workspace):
    assert rows(stale_evidence.stale(workspace, days=36_500, current="any")) == []
    assert rows(stale_evidence.stale(workspace, days=36_500, current="ledger")) == []
    (old,) = rows(stale_evidence.stale(workspace, days=0, current="any"))
    assert old["why"] == "older than 0 days"
    (elsewhere,) = rows(stale_evidence.stale(workspace, days=36_500, current="here"))
    assert elsewhere["why"] == "this machine has no h200" or "->" in elsewhere["why"] or "another" in elsewhere["why"]
    with pytest.raises(UsageError, match="bad days"):
        stale_evidence.stale(workspace, days=-1, current="any")


def test_refusals_are_counted_by_who_and_when(workspace):
    answer = authors.rejections(workspace, by="author", limit=5)
    assert rows(answer) == [{"author": "an author", "refused": 2, "inconclusive": 0}]
    assert [one["reason_code"] for one in answer.more["newest"]] == ["INCORRECT_NUMERICAL", "TOO_SLOW"]
    assert rows(authors.rejections(workspace, by="day", limit=0))[0]["day"] == "2026-01-02"
    assert rows(authors.rejections(workspace, by="code", until="2026-01-02", limit=0)) == []
    assert len(rows(authors.rejections(workspace, by="code", since="2026-01-02", limit=0))) == 2
    for option in ({"code": "NOPE"}, {"since": "yesterday"}):
        with pytest.raises(UsageError):
            authors.rejections(workspace, by="code", limit=0, **option)


def test_claims_stand_beside_measurements_and_open_ones_are_counted(workspace):
    (row,) = rows(authors.claims(workspace, by="author"))
    assert (row["author"], row["claims"], row["overstated"], row["open"]) == ("an author", 2, 1, 1)
    assert (row["compared"], row["median_ratio"], row["largest_ratio"]) == (1, 2.0, 2.0)


def test_experiments_are_found_by_their_end_and_failures_are_among_them(workspace):
    answer = authors.experiments(workspace, limit=50)
    assert {"incorrect", "improved"} <= set(answer.column("ended"))
    assert [row["op"] for row in rows(authors.experiments(workspace, ended="incorrect", limit=50))] == ["softmax"]
    assert rows(authors.experiments(workspace, text="%", limit=50)) == []
    with pytest.raises(UnknownName):
        authors.experiments(workspace, ended="won", limit=50)


def test_effect_is_over_all_that_was_attempted(workspace):
    (row,) = [row for row in rows(authors.effectiveness(workspace, by="author")) if row["author"] == "an author"]
    assert (row["attempted"], row["promoted"], row["standing"]) == (5, 3, 1)
    assert row["promoted_share"] == pytest.approx(3 / 5)
    assert row["gpu_s"] is None
    skills = {row["skill"]: row["promoted"] for row in rows(authors.effectiveness(workspace, by="skill"))}
    assert skills == {"one": 1, "two": 1}
    templates = [row["template"] for row in rows(authors.effectiveness(workspace, by="template"))]
    assert any(name.startswith("brief v3 ") for name in templates)


@pytest.mark.parametrize(
    "wanted", [{}, {"kernel": "a_v1", "candidate": "ab"}, {"op": "rmsnorm"}, {"candidate": "zz"}, {"candidate": ""}]
)
def test_a_history_is_that_of_one_thing(wanted, workspace):
    with pytest.raises(UsageError):
        histories.history(OfWorkspace(workspace), limit=5, **wanted)


def test_every_name_on_the_surface_can_be_asked_and_its_columns_are_told(workspace):
    told = {row["name"]: row["columns"].split(", ") for row in rows(free_sql.views(workspace))}
    assert set(told) == set(SURFACE)
    for name, columns in told.items():
        answer = free_sql.ask(workspace, f"SELECT * FROM {name}", limit=1000, seconds=10)
        assert list(answer.columns) == columns
        count = free_sql.ask(
            workspace, f"WITH all_of AS (SELECT * FROM {name}) SELECT count(*) FROM all_of", limit=1, seconds=9
        )
        assert count.rows == ((len(answer.rows),),)


HARMLESS = st.text(min_size=1).filter(
    lambda text: not text.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
)


@given(cells=st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=20)), min_size=1, max_size=5))
def test_no_text_in_a_csv_begins_as_a_formula_and_the_rest_is_kept(cells):
    answer = Answer("t", tuple(f"c{place}" for place in range(len(cells))), (tuple(cells),))
    _, written = csv.reader(io.StringIO(as_csv(answer), newline=""))
    for cell, given_back in zip(cells, written, strict=True):
        if isinstance(cell, str):
            seen = unicodedata.normalize("NFKC", given_back).lstrip(" ")
            assert not seen.startswith(("=", "+", "-", "@", "\t", "\n"))
            assert not any(unicodedata.category(one) in ("Cc", "Cf") and one not in "\t\n" for one in given_back)
            if not any(unicodedata.category(one) in ("Cc", "Cf") for one in cell):
                assert given_back in (cell, f"'{cell}")
        else:
            assert given_back == ("" if cell is None else str(cell))


def test_no_text_in_a_csv_commands_a_terminal_or_hides_a_formula_behind_a_wide_sign():
    cells = ("a\x1b[2Jb\rc", "\uff1d1+1", "\u00a0=1", "\u200b=1", "two\nlines")
    *_, written = csv.reader(io.StringIO(as_csv(Answer("t", tuple("abcde"), (cells,))), newline=""))
    assert written == ["a\\x1b[2Jb\\rc", "'\uff1d1+1", "'\u00a0=1", "\\u200b=1", "two\nlines"]


def test_a_parquet_file_gives_the_rows_back(tmp_path):
    from pyarrow import parquet

    answer = Answer("t", ("name", "count", "mixed"), (("a", 1, 1.5), ("=b", None, 2)))
    write_parquet(answer, tmp_path / "rows.parquet")
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == answer.document()["rows"]
    write_parquet(Answer("t", ("name",), ()), tmp_path / "empty.parquet")
    assert parquet.read_table(tmp_path / "empty.parquet").num_rows == 0
    with pytest.raises(UsageError, match="can't write"):
        write_parquet(answer, tmp_path / "gone" / "rows.parquet")


def test_a_table_with_speedups_before_and_after_says_what_its_columns_are(workspace):
    said = " ".join(speed.regressions(workspace, slower=1.05).notes)
    assert "earlier, later: speedups over the baseline, with the ends of their 95 % intervals" in said


def test_an_answer_is_one_json_document(workspace):
    assert json.loads(json.dumps(speed.leaderboard(workspace).document()))["notes"]
