"""Runs brought to a state by events that the ledger accepts, where no guest is needed for what is tested."""

import dataclasses
from pathlib import Path

from forge.app.machine.chosen_executor import executor_of
from forge.app.phases.phase_inputs import evidence_of
from forge.app.phases.phases import submit_candidate
from forge.app.runs.states import GATE
from forge.app.workspace import Workspace
from forge.domain.digest import Digest, canonical, sha256
from forge.domain.evidence import GateResult, Isolation, WorkloadErrors
from forge.domain.verdict import Reason
from forge.events import BenchmarkRecorded, CandidateRejected, CandidateSubmitted, CandidateVerified, Event
from forge.lab.timing.residency import Residence
from forge.lab.timing.slope import SlopeSamples
from forge.pipeline import benchmark
from forge.pipeline.further_shapes import conclude_further
from forge.pipeline.job import RecordedCandidate
from forge.pipeline.samples import Samples
from forge.pipeline.timings import MeasuredShape
from tests.cli.asking import HONEST

WALL = Isolation(level="namespaces", parts=("user", "pid", "net"), missing=())
CALLS = 8


GATES = (
    *("sources", "signature", "replay", "numerics", "determinism", "scales", "aliasing", "sizes", "state"),
    *("mutation", "bounds", "own_tests"),
)
"""Gates that every judge asks."""


def samples(
    *,
    candidate_ns: float = 50_000,
    eager_ns: float = 100_000,
    harness_ns: float = 1000,
    pairs: int = 3,
    rounds: int = 4,
    wobble: float = 0.0,
    later: int = 0,
) -> Samples:
    """Raw samples of a candidate and its baseline, the baseline against itself among them.

    No two pairs have the same times, and another number of `later` gives others.
    """
    per_call = {"candidate": candidate_ns, "eager": eager_ns, "control": eager_ns}
    made = []
    for pair in range(pairs):
        times = {side: round(CALLS * (harness_ns + ns * (1 + wobble * (pair - 1)))) for side, ns in per_call.items()}
        path = {"harness": round(CALLS * harness_ns)}
        shift = later + pair if harness_ns else 0  # the difference to the path stays
        made.append(({side: ns + shift for side, ns in (times | path).items()},) * rounds)
    return Samples((SlopeSamples(calls=CALLS, pairs=tuple(made), residence=Residence(None, 2048)),))


def submitted(workspace: Workspace, run_id: str) -> CandidateSubmitted:
    event = submit_candidate(workspace, workspace.find_run(run_id), HONEST, author="ada")
    assert isinstance(event, CandidateSubmitted)
    return event


def gathered(workspace: Workspace, run_id: str) -> RecordedCandidate:
    """What a judging phase has, behind a wall that any machine is said to have here."""
    run = workspace.find_run(run_id)
    found = evidence_of(
        workspace, run, executor_of(workspace).site(workspace.policy), attempt=run.attempts.verify + 1
    )
    return dataclasses.replace(found, isolation=WALL)


def verified(workspace: Workspace, run_id: str, *, artifact_sha256: Digest | None = None) -> CandidateVerified:
    """Record that every gate passed, over what was built, where that is stored already."""
    evidence = gathered(workspace, run_id)
    errors = tuple(
        WorkloadErrors(shape=shape, inputs="normal", max_relative_error=1e-7, bound_used=0.1)
        for shape in evidence.task.shapes
    )
    gates = tuple(GateResult(name=name, verdict="passed", observed="as asked", threshold="it") for name in GATES)
    report = _report(evidence, errors, gates)
    event = CandidateVerified(
        run_id=run_id,
        task_id=evidence.task.task_id,
        candidate=evidence.submitted.candidate,
        attempt=evidence.attempt,
        artifact_sha256=artifact_sha256,
        workloads=errors[:1],
        shapes_verified=evidence.task.shapes,
        gates=gates,
        seeds_sha256=sha256(canonical({"seeds": [1]})),
        isolation=WALL,
        env_sha256=evidence.environment.env_sha256,
        simulated=False,
        report_sha256=workspace.blobs.put(report),
        policy_sha256=evidence.task.policy_sha256,
    )
    workspace.directory(run_id).write("verification_report.json", report)
    workspace.append((event,), run_id=run_id, key=f"verify:{run_id}:1", actor=GATE)
    return event


def _report(evidence: RecordedCandidate, errors: tuple[WorkloadErrors, ...], gates: tuple[GateResult, ...]) -> bytes:
    return canonical(
        {
            "candidate": evidence.submitted.candidate,
            "task_id": evidence.task.task_id,
            "attempt": evidence.attempt,
            "verdict": {"verdict": "accepted"},
            "gates_sha256": None,
            "gates": [gate.model_dump(mode="json") for gate in gates],
            "workloads": [one.model_dump(mode="json") for one in errors],
            "seeds": [1],
            "isolation": WALL.model_dump(mode="json"),
            "environment": evidence.environment.env_sha256,
        }
    )


def benchmarked(workspace: Workspace, run_id: str, *, taken: Samples | None = None) -> BenchmarkRecorded:
    """Record samples that meet the rule."""
    event = concluded(workspace, run_id, taken or samples())
    assert isinstance(event, BenchmarkRecorded), event
    return event


def concluded(
    workspace: Workspace,
    run_id: str,
    taken: Samples,
    *,
    confirmed: Samples | None = None,
    further: tuple[MeasuredShape, ...] = (),
) -> Event:
    """Record what the rule makes of samples, of those of the confirmation, and of those at further shapes."""
    run = workspace.find_run(run_id)
    assert run.verified is not None
    attempt = run.attempts.benchmark + 1
    evidence = dataclasses.replace(gathered(workspace, run_id), attempt=attempt)
    again = (confirmed or samples(candidate_ns=51_000)) if evidence.policy.confirmation else None
    measured = benchmark.Measured(samples=taken, floor_ns=20_000.0, claims={}, confirmation=again)
    further_seqs: tuple[int, ...] = ()
    if further:
        shapes = conclude_further(evidence, further, verified_seq=run.verified.seq)
        recorded = workspace.record(shapes, run_id=run_id, key=f"bench:{run_id}:{attempt}:shapes", actor=GATE)
        further_seqs = tuple(range(recorded.first_seq, recorded.last_seq + 1))
    timed = benchmark.baselines(evidence, measured)
    seqs: tuple[int, ...] = ()
    if timed.events:
        key = f"bench:{run_id}:{attempt}:made"
        seqs = (workspace.record(timed, run_id=run_id, key=key, actor=GATE).first_seq,)
    outcome = benchmark.conclude(
        evidence, measured, verified_seq=run.verified.seq, baseline_seqs=seqs, further_seqs=further_seqs
    )
    workspace.record(outcome, run_id=run_id, key=f"bench:{run_id}:{attempt}", actor=GATE)
    return outcome.events[0]


def verified_run(home: Path) -> str:
    """The last run, submitted and verified."""
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        submitted(workspace, run_id)
        verified(workspace, run_id)
    return run_id


def benchmarked_run(home: Path) -> str:
    """The last run, ready to be promoted."""
    run_id = verified_run(home)
    with Workspace.open(home) as workspace:
        benchmarked(workspace, run_id)
    return run_id


def rejected_run(home: Path, *, seal: bool = True) -> str:
    """The last run, refused on evidence."""
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        candidate = submitted(workspace, run_id)
        event = CandidateRejected(
            run_id=run_id,
            task_id=candidate.task_id,
            candidate=candidate.candidate,
            stage="verify",
            reason=Reason(code="INCORRECT_NUMERICAL", message="3.2 x the bound"),
        )
        workspace.append((event,), run_id=run_id, key=f"verify:{run_id}:1", actor=GATE)
        if seal:
            workspace.seal(run_id, "rejected")
    return run_id
