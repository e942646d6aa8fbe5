"""Experiments in the tables: what was decided, failures among them; an author's words are made harmless."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from forge.domain.experiment import Conclusion
from forge.domain.one_line import HYPOTHESIS_LIMIT, one_line
from forge.events import ExperimentClosed
from forge.projections.catch_up import built
from forge.projections.experiments import (
    LATEST_EXPERIMENTS,
    best_kernel,
    earlier_experiments,
)
from forge.projections.sqlite_file import connect
from tests.projections.histories import History, Run, asked, benchmarked, deprecate, opened, past, promoted
from tests.projections.values import SHAPE, digest, task

RMSNORM = task(op="rmsnorm")


@contextmanager
def tables(history: History) -> Iterator[sqlite3.Connection]:
    with (
        TemporaryDirectory() as folder,
        built(Path(folder), past(history.events)) as (path, _),
        closing(connect(path)) as connection,
    ):
        yield connection


def close(run: Run, *, ended: str = "regressed", decided_seq: int) -> int:
    """The phase's own word on the run's experiment, which differs from what the decision alone says."""
    conclusion = Conclusion.model_validate(
        {"ended": ended, "reason": None, "against": "parent", "speedup": {"ratio": 0.9, "low": 0.8, "high": 0.95}}
    )
    return run.history.add(
        ExperimentClosed(
            **run.ids,
            parent=digest("parent"),
            layer="L1",
            axis="tiling",
            conclusion=conclusion,
            decided_seq=decided_seq,
        )
    )


def failing(code: str) -> Callable[[Run], Run]:
    return lambda run: run.fail(code)


@pytest.mark.parametrize(
    ("decide", "row"),
    [
        (lambda run: run.benchmark(ratio=1.5), ("improved", None, "eager", 1.5)),
        (lambda run: run.benchmark(ratio=1.01), ("no_change", None, "eager", 1.01)),
        (failing("TOO_SLOW"), ("regressed", "TOO_SLOW", "eager", 0.9)),
        (failing("BELOW_FLOOR"), ("incorrect", "BELOW_FLOOR", None, None)),
    ],
)
def test_a_decision_that_no_event_closed_is_read_as_it_stands(decide: Callable[[Run], Run], row: tuple) -> None:
    history = opened()
    run = decide(Run(history, RMSNORM, "a").start().submit().verify())
    assert asked(history, "SELECT ended, reason, against, speedup FROM experiments") == [row]
    seq = len(history.events)
    assert asked(history, "SELECT run_id, op, closed_seq, decided_seq FROM experiments") == [
        (run.run_id, "rmsnorm", seq, seq)
    ]


@pytest.mark.parametrize("code", ["GPU_SHARED", "NOISE_TOO_HIGH"])
def test_what_says_nothing_about_the_candidate_stays_open(code: str) -> None:
    history = opened()
    run = Run(history, RMSNORM, "a").start().submit().verify().fail(code)
    assert asked(history, "SELECT count(*) FROM experiments") == [(0,)]
    assert asked(history, "SELECT run_id, ended FROM trials") == [(run.run_id, None)]


def test_the_phases_own_word_stands() -> None:
    history = opened()
    run = benchmarked(history, wanted=RMSNORM)
    decided = len(history.events)
    closed = close(run, decided_seq=decided)
    assert asked(
        history, "SELECT ended, against, parent, speedup, low, high, decided_seq, closed_seq FROM experiments"
    ) == [("regressed", "parent", digest("parent"), 0.9, 0.8, 0.95, decided, closed)]


def test_a_plan_gets_those_of_its_own_processor_first_each_newest_first() -> None:
    history = opened()
    runs = [
        Run(history, wanted, f"r{place:02}").start().submit().verify().fail("TOO_SLOW")
        for place, wanted in enumerate([RMSNORM, task(op="rmsnorm", gpu="h100"), RMSNORM, task(op="softmax")])
    ]
    with tables(history) as connection:
        found = earlier_experiments(connection, RMSNORM)
    assert [one.run_id for one in found] == [runs[2].run_id, runs[0].run_id, runs[1].run_id]
    assert {(one.ended, one.reason, one.against) for one in found} == {("regressed", "TOO_SLOW", "eager")}
    assert found[0].family == RMSNORM.family
    assert found[0].low is not None


def test_an_author_reads_the_latest_few() -> None:
    history = opened()
    made = [
        Run(history, RMSNORM, f"r{place:02}").start().submit().verify().fail("TOO_SLOW").run_id
        for place in range(LATEST_EXPERIMENTS + 3)
    ]
    with tables(history) as connection:
        assert [one.run_id for one in earlier_experiments(connection, RMSNORM)] == made[::-1][:LATEST_EXPERIMENTS]


def test_the_best_kernel_is_one_at_this_shape_that_still_stands() -> None:
    history = opened()
    with tables(history) as connection:
        assert best_kernel(connection, RMSNORM) is None
    elsewhere = promoted(history, name="a", wanted=task(op="rmsnorm", gpu="h100"), ratio=9.0)
    other = promoted(history, name="b", wanted=RMSNORM.model_copy(update={"shape": {**SHAPE, "batch": 3}}), ratio=5.0)
    with tables(history) as connection:
        found = best_kernel(connection, RMSNORM)
    assert found is not None
    assert (found.kernel_id, found.same_shape) == (other, False)
    here = promoted(history, name="c", wanted=RMSNORM, ratio=1.5, median_ns=2000.0)
    with tables(history) as connection:
        found = best_kernel(connection, RMSNORM)
    assert found is not None
    assert (found.kernel_id, found.same_shape, found.speedup.ratio) == (here, True, 1.5)
    assert (found.median_us, found.floor_fraction, found.baseline) == (2.0, 0.5, "eager")
    deprecate(history, here)
    with tables(history) as connection:
        found = best_kernel(connection, RMSNORM)
    assert found is not None
    assert found.kernel_id == other != elsewhere


def test_an_authors_words_can_leave_neither_their_line_nor_their_cell() -> None:
    said = one_line("wider\n\n# New task | `rm` <script>\x1b[31m\u2028 end ![x](y)")
    assert said is not None
    assert not set(said) & set("|`<>[]\n\x1b\u2028")
    assert said.startswith("wider # New task / 'rm' (script)")
    cut = one_line("x" * 500)
    assert cut is not None
    assert len(cut) == HYPOTHESIS_LIMIT
    assert one_line(None) is None
