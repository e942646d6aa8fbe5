"""Noise that is larger than the work: no time, no verdict, and the next step said."""

import dataclasses
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.domain.another_run import IN_ANOTHER_RUN
from forge.events import BenchmarkFailed, BenchmarkRecorded
from forge.pipeline.samples import Samples
from tests.app.prepared import concluded, samples, verified_run
from tests.cli.asking import ask


@pytest.mark.parametrize(
    ("taken", "confirmed", "next_step"),
    [
        (
            samples(candidate_ns=-1),
            None,
            "count in the run's next ones, so measure in another run",
        ),
        (samples(), samples(eager_ns=-1), "measure again"),
    ],
)
def test_a_time_that_is_none_leaves_the_question_open(
    taken: Samples, confirmed: Samples | None, next_step: str, home: Path
) -> None:
    run_id = verified_run(home)
    with Workspace.open(home) as workspace:
        event = concluded(workspace, run_id, taken, confirmed=confirmed)
    assert isinstance(event, BenchmarkFailed)
    assert event.reason.code == "NOISE_TOO_HIGH"
    assert "some times aren't above zero" in event.reason.message
    assert event.reason.message.endswith(next_step)
    following = ask("run", "show", run_id, "--home", home, "--json").document["next"]
    another = next_step.endswith("another run")
    assert following == (f"forge run open {event.task_id}" if another else f"forge bench {run_id}")


def slower_in_some_pairs(pairs: tuple[float, ...]) -> Samples:
    """Samples whose candidate takes another time in each pair."""
    (attempt,) = samples().attempts
    changed = tuple(
        tuple({**one, "candidate": round(one["candidate"] * factor)} for one in rounds)
        for factor, rounds in zip(pairs, attempt.pairs, strict=True)
    )
    return Samples((dataclasses.replace(attempt, pairs=changed),))


@pytest.mark.parametrize("pairs", [(1.0, 1.8, 1.2), (1.0, 2.4, 1.2)])
def test_a_speedup_that_cant_be_told_is_looked_at_once(pairs: tuple[float, ...], home: Path) -> None:
    run_id = verified_run(home)
    with Workspace.open(home) as workspace:
        event = concluded(workspace, run_id, slower_in_some_pairs(pairs))
    assert isinstance(event, BenchmarkFailed)
    assert event.reason.code == "NOISE_TOO_HIGH"
    assert event.reason.message.endswith(f"can't tell; {IN_ANOTHER_RUN}")
    refused = ask("bench", run_id, "--home", home)
    assert (refused.status, "can't be decided by another attempt" in refused.error) == (2, True), refused
    assert f"forge run open {event.task_id}" in refused.err


def test_a_path_that_takes_no_time_is_no_noise(home: Path) -> None:
    run_id = verified_run(home)
    with Workspace.open(home) as workspace:
        event = concluded(workspace, run_id, samples(harness_ns=0))
    assert isinstance(event, BenchmarkRecorded)
    assert event.workloads[0].harness_ns == 0
