"""Answers to questions: plain data for a table or for JSON, from the ledger and its projections."""

from dataclasses import asdict
from pathlib import Path

import orjson

from forge.app.benchmark_answer import timed
from forge.app.key_folder import kept_beside
from forge.app.run_files import recorded_digests
from forge.app.runs import next_of
from forge.app.workspace import LEDGER_FILE, REGISTRY_FOLDER, RUNS_FOLDER, Workspace, find_home
from forge.domain.own_operation import BATCH, is_own
from forge.domain.tensors import parse_dtype, parse_shape
from forge.domain.verdict import Reason
from forge.errors import BlobCorrupt, IntegrityError, PhaseOutOfOrder, ProofRefused, WorkspaceNotFound
from forge.events import (
    BenchmarkErrored,
    BenchmarkFailed,
    BenchmarkRecorded,
    CandidateRejected,
    CandidateSubmitted,
    CandidateVerified,
    Event,
    KernelPromoted,
    PromotionDenied,
    TaskCreated,
    VerificationErrored,
)
from forge.languages import find_language
from forge.ledger.audit.history import audit
from forge.ledger.runs.directory import check
from forge.lookup import Policy, Registry
from forge.lookup.answer import Kernel
from forge.lookup.beside import newest_decision
from forge.operations import find_operation
from forge.platforms import PROCESSORS, find_target
from forge.projections.read_through import refusals
from forge.projections.runs import RunState
from forge.proof.files import key_of, read

Data = dict[str, object]


def outcome(event: Event, *, workspace: Workspace) -> Data:
    """A phase's event as the command answers it: a verdict, its reason, and what was seen."""
    match event:
        case CandidateSubmitted():
            return {"verdict": "accepted", "candidate": event.candidate, "reason": None}
        case CandidateRejected():
            judged: Data = {"verdict": "rejected", "candidate": event.candidate, "stage": event.stage}
            shown: Data = {"counterexample": _counterexample(event, workspace)}
            return judged | _seen(event) | shown | _reported(event, workspace)
        case CandidateVerified():
            passed: Data = {"verdict": "accepted", "candidate": event.candidate, "simulated": event.simulated}
            wall: Data = {"isolation": event.isolation.model_dump(mode="json")}
            return passed | _seen(event) | wall | _reported(event, workspace)
        case BenchmarkRecorded() | BenchmarkFailed():
            return timed(event)
        case VerificationErrored() | BenchmarkErrored():
            reason = {"code": "INFRASTRUCTURE", "message": event.detail}
            return {"verdict": "inconclusive", "candidate": event.candidate, "reason": reason}
        case KernelPromoted():
            return {"verdict": "accepted", "kernel_id": event.kernel_id, "reason": None} | _seen(event)
        case PromotionDenied():
            return {"verdict": "rejected", "kernel_id": None} | _seen(event)
        case _:
            raise AssertionError(f"{event.TYPE} is no phase's answer")


def _seen(event: CandidateVerified | CandidateRejected | KernelPromoted | PromotionDenied) -> Data:
    reason = getattr(event, "reason", None)
    return {
        "reason": reason.model_dump(mode="json") if isinstance(reason, Reason) else None,
        "gates": [gate.model_dump(mode="json") for gate in event.gates],
    }


def _counterexample(event: CandidateRejected, workspace: Workspace) -> object:
    if event.counterexample_sha256 is None:
        return None
    return orjson.loads(workspace.blobs.get(event.counterexample_sha256))


def _reported(event: CandidateVerified | CandidateRejected, workspace: Workspace) -> Data:
    """What the sources showed, where what was built of them is kept, and the judgement that this one repeats."""
    report: Data = {}
    if event.report_sha256 is not None:
        report = orjson.loads(workspace.blobs.get(event.report_sha256))
    built = report.get("built", [])
    assert isinstance(built, list)
    kept = [{**one, "kept_at": str(workspace.blobs.path(one["sha256"]))} for one in built]
    reused = _reused(event.reused_seq, workspace)
    return {"findings": report.get("findings", []), "built": kept, "reused": reused}


def _reused(seq: int | None, workspace: Workspace) -> Data | None:
    if seq is None:
        return None
    (earlier,) = workspace.ledger.read(after_seq=seq - 1, limit=1)
    return {"seq": seq, "recorded_at": earlier.recorded_at, "run_id": getattr(earlier.event, "run_id", None)}


def run_summary(run: RunState) -> Data:
    """Where a run stands."""
    rejected = run.rejection.event.reason if run.rejection else None
    failed = run.failure.event.reason if run.failure else None
    reason = rejected or failed
    return {
        "run_id": run.run_id,
        "task_id": run.task_id,
        "state": run.state,
        "sealed": run.sealed,
        "started_at": run.started.recorded_at,
        "candidate": run.submitted.event.candidate if run.submitted else None,
        "author": run.submitted.event.author if run.submitted else None,
        "reason": reason.model_dump(mode="json") if reason else None,
        "kernel_id": getattr(run.promotion.event, "kernel_id", None) if run.promotion else None,
        "next": next_of(run),
    }


def tasks(workspace: Workspace) -> list[Data]:
    """Every task, oldest first."""
    created = (recorded for recorded in workspace.ledger.read(types=("TaskCreated",)))
    return [
        {"task_id": one.event.task_id, "created_at": one.recorded_at, **one.event.task.model_dump(mode="json")}
        for one in created
        if isinstance(one.event, TaskCreated)
    ]


def check_run(workspace: Workspace, run: RunState) -> list[Data]:
    """How a sealed run's directory differs from its manifest and from what events name; empty if it doesn't."""
    manifest = getattr(run.end.event, "manifest_sha256", None) if run.end else None
    if manifest is None:
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} is {run.state} and not sealed: expected one that has come to its end",
            hint=f"forge run show {run.run_id}",
        )
    found = check(workspace.runs_root / run.run_id, manifest, recorded=recorded_digests(run))
    return [{"kind": problem.kind, "path": problem.path} for problem in found]


def log(workspace: Workspace, *, after_seq: int, limit: int | None, types: tuple[str, ...] | None) -> list[Data]:
    """Events in order, with their envelopes."""
    return [
        {
            "seq": recorded.seq,
            "type": recorded.event.TYPE,
            "stream": recorded.stream,
            "stream_version": recorded.stream_version,
            "recorded_at": recorded.recorded_at,
            "actor": recorded.actor,
            "run": recorded.correlation_id,
            "event_hash": recorded.event_hash,
            "payload": recorded.event.model_dump(mode="json"),
        }
        for recorded in workspace.ledger.read(after_seq=after_seq, types=types, limit=limit)
    ]


def verify_ledger(home: Path, *, checkpoint: Path | None = None, key: str | None = None, full: bool = False) -> Data:
    """Re-derive the whole ledger from its raw rows, with what it names; then have its readers read all of it.

    `checkpoint` is a note that was kept elsewhere, `key` the verifier key to trust, itself or in a file. The
    checkpoint that this workspace published, and what its keys signed last, are held against it in any case.
    """
    report = audit(
        home / LEDGER_FILE,
        runs=home / RUNS_FOLDER,
        checkpoint=None if checkpoint is None else read(checkpoint),
        key=None if key is None else key_of(key),
        full=full,
        kept=kept_beside(home, home / REGISTRY_FOLDER),
    )
    refused = refusals(home / LEDGER_FILE, after=report, full=full)
    found, vouching = report.checkpoint, report.vouching
    return {
        "ok": report.ok and not refused,
        "events": report.events,
        "size": report.events,
        "imported": report.imported,
        "head": report.head,
        "root": report.root,
        "signed": report.signed,
        "keys": [asdict(one) for one in report.keys],
        "verdict": vouching.verdict if vouching else None,
        "vouched_for": vouching.vouched_for if vouching else None,
        "unvouched": vouching.unvouched if vouching else None,
        "checkpoint": None if found is None else asdict(found),
        "problems": [asdict(problem) for problem in (*report.problems, *refused)],
    }


def _require_promoted(kernel: Kernel) -> None:
    """Raise BlobCorrupt unless the file that the answer names is the one that was promoted."""
    try:
        kernel.read_source()
    except BlobCorrupt as error:
        error.hint = "forge ledger rebuild"
        raise


def rebuild(workspace: Workspace) -> list[Data]:
    """Fold every projection again from zero, say which published files differ, and replace them."""
    return [asdict(one) for one in workspace.publication.build_anew()]


def _published(home: Path, key: str | None) -> Registry:
    """The published registry; one that lacks a decision of its ledger is published first, or doesn't answer."""
    try:
        registry = Registry.open(home / REGISTRY_FOLDER, key=key)
        decided = newest_decision(str(home)) or 0
        if decided > registry.health().ledger_seq:
            with Workspace.open(home) as workspace:
                if workspace.presence is None:
                    raise IntegrityError(
                        f"the registry in {str(home)!r} lacks event {decided}, a decision about kernels, and nothing "
                        "can be published there: expected a folder that you may write to"
                    )
                workspace.catch_up()
            registry = Registry.open(home / REGISTRY_FOLDER, key=key)
    except (IntegrityError, WorkspaceNotFound) as error:
        if not isinstance(error, ProofRefused):
            error.hint = "forge ledger rebuild" if (home / LEDGER_FILE).exists() else f"forge init {home}"
        raise
    return registry


def look_up(
    home: Path | None,
    *,
    op: str,
    gpu: str,
    dtype: str,
    shape: str,
    policy: Policy,
    language: str | None = None,
    key: str | None = None,
) -> Data:
    """What the published registry answers, once every decision that its ledger holds is published.

    With a `key`, that key must vouch for it. Raises BlobCorrupt if the kernel's source isn't what was promoted.
    """
    axes = (BATCH,) if is_own(op) else find_operation(op).axes
    sizes = parse_shape(shape, axes)
    target = find_target(gpu)
    workspace = find_home(home)
    registry = _published(workspace, key)
    known = find_language(language).name if language is not None else None
    slot = {"op": op, "gpu": target.gpu, "dtype": parse_dtype(dtype)}
    arch = PROCESSORS[target.gpu].arch
    found = registry.lookup(**slot, shape=sizes, language=known, policy=policy.of_architecture(arch))
    kernel, evidence = found.kernel, found.evidence
    if kernel is not None:
        _require_promoted(kernel)
    return {
        "match": found.match,
        "gpu_arch": arch,
        "ran_on_gpu": target.gpu in registry.gpus if target.platform != "cpu" else None,
        "generation": found.generation,
        "ledger_seq": registry.health().ledger_seq,
        "kernel_id": kernel.kernel_id if kernel else None,
        "entry_point": kernel.entry_point if kernel else None,
        "source": kernel.source_path if kernel else None,
        "sha256": kernel.sha256 if kernel else None,
        "evidence": evidence.document() if evidence else None,
        "rejected": [list(item) for item in found.rejected],
    }
