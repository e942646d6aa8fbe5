"""A benchmark that stops early is recorded with its figures, read by both verifiers, and can't be promoted."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forge.app.phases.phases import promote_candidate
from forge.app.runs.benchmark_answer import timed
from forge.app.runs.states import GATE, finish_phase
from forge.app.stored.run_documents import of_state
from forge.app.stored.run_files import check_run
from forge.app.workspace import Workspace
from forge.domain.policy import Policy
from forge.errors import PhaseOutOfOrder
from forge.events import BenchmarkFailed, BenchmarkRecorded, ClaimAssessed, ClaimRecorded
from forge.lab.timing.slope import SlopeSamples
from forge.ledger.audit.history import audit
from forge.pipeline import claims
from forge.pipeline.benchmark import conclude_stopped
from forge.pipeline.early_stop import Stopped
from forge.pipeline.further_shapes import measure_shapes
from forge.pipeline.timing_setup import TimingSetup
from forge.pipeline.timings import Measured
from tests.app.prepared import gathered, samples, submitted, verified
from tests.app.test_measure_shapes import ScriptedExecutor
from tests.cli.asking import copied

READER = Path(__file__).parents[1] / "second_verifier"
ROUNDS = Policy().rounds


class PairByPair(ScriptedExecutor):
    """An executor that has the samples of each pair given, and asks after the first as the lab does."""

    def __init__(self, candidate_ns: float) -> None:
        super().__init__({})
        taken = samples(candidate_ns=candidate_ns, pairs=5, rounds=ROUNDS).attempts[0]
        assert isinstance(taken, SlopeSamples)
        self.taken = taken

    def measure(
        self, *_: object, may_stop: Callable[[SlopeSamples], bool] | None = None, **__: object
    ) -> SlopeSamples:
        first = SlopeSamples(calls=self.taken.calls, pairs=self.taken.pairs[:1], residence=self.taken.residence)
        return first if may_stop is not None and may_stop(first) else self.taken


def measured(workspace: Workspace, candidate_ns: float) -> Any:
    import random

    return measure_shapes(
        TimingSetup(
            evidence=gathered(workspace, "last"),
            executor=PairByPair(candidate_ns),  # type: ignore[arg-type]  # a test's: what isn't asked here is left out
            artifact=(),
            incumbent=None,
            ceilings=None,
            rng=random.Random(1),
            progress=lambda _: None,
        ),
        None,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    """A workspace with one run that ended by an early stop."""
    home = copied(open_workspace, tmp_path_factory.mktemp("early") / "home")
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        submitted(workspace, run_id)
        verified(workspace, run_id)
        found = measured(workspace, 217_000)
        assert isinstance(found, Stopped)
        run = workspace.find_run(run_id)
        assert run.verified is not None
        evidence = gathered(workspace, run_id)
        said = claims.own_bench_claims(
            {"speedup": 1.9, "candidate_latency_us": 3.0},
            run_id=run_id,
            candidate=evidence.submitted.candidate,
            family=evidence.task.family,
            attempt=1,
        )
        workspace.append(said, run_id=run_id, key="claims")
        outcome = conclude_stopped(evidence, found, verified_seq=run.verified.seq)
        workspace.record(outcome, run_id=run_id, key=f"bench:{run_id}:1", actor=GATE)
        finish_phase(workspace, workspace.find_run(run_id))
    return home


@pytest.fixture
def stopped(home: Path) -> Iterator[Workspace]:
    with Workspace.open(home) as workspace:
        yield workspace


def failure(workspace: Workspace) -> BenchmarkFailed:
    found = workspace.find_run("last").failure
    assert found is not None
    return found.event


def test_the_verdict_is_too_slow_with_its_figures_and_the_run_ends(stopped: Workspace) -> None:
    run, event = stopped.find_run("last"), failure(stopped)
    assert (run.state, run.sealed, event.workloads) == ("failed", True, ())
    answer = timed(event.model_dump(mode="json"))
    assert answer["verdict"] == "rejected"
    assert event.reason.message.startswith("0.46x over eager in the first process pair, and 0.46x with")
    assert event.stopped is not None
    assert event.stopped.rounds == ROUNDS
    assert check_run(stopped.runs_root, of_state(run)) == []
    kept = json.loads((stopped.directory(run.run_id).path / "benchmark_samples.json").read_bytes())
    assert [len(one["pairs"]) for one in kept["attempts"]] == [1]


def test_both_verifiers_read_it_and_find_nothing(home: Path) -> None:
    report = audit(home / "kernel_registry.db", runs=home / "forge_runs", full=True)
    assert report.ok, report.problems
    command = [sys.executable, "-I", "-S", str(READER), str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    said = json.loads(done.stdout)
    assert said["faults"] == []
    assert said["counts"]["benchmarks"] == 1


def test_a_stop_is_never_promoted(stopped: Workspace) -> None:
    with pytest.raises(PhaseOutOfOrder):
        promote_candidate(stopped, stopped.find_run("last"))
    assert "stopped" not in BenchmarkRecorded.model_fields


def test_a_claim_of_a_speedup_is_refuted_by_it(stopped: Workspace) -> None:
    recorded = [one.event for one in stopped.ledger.read(types=("ClaimRecorded", "ClaimAssessed"))]
    metrics = {one.claim_id: one.metric for one in recorded if isinstance(one, ClaimRecorded)}
    found = {metrics[one.claim_id]: one for one in recorded if isinstance(one, ClaimAssessed)}
    event = failure(stopped)
    assert event.stopped is not None
    assert (found["speedup"].verdict, found["speedup"].measured_value) == ("refuted", event.stopped.ratio)
    assert found["candidate_latency_us"].verdict == "not_comparable"


def test_a_candidate_near_the_threshold_is_measured_in_full(stopped: Workspace) -> None:
    found = measured(stopped, 104_000)
    assert isinstance(found, Measured)
    assert len(found.samples.per_call_ns("candidate")) == 5
