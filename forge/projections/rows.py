"""Makes rows of `history.db` from recorded events; a row's keys are its table's columns."""

from collections.abc import Sequence
from typing import Any

from forge.domain.digest import canonical
from forge.domain.verdict import UNDECIDED
from forge.ledger.replay import Line
from forge.projections.kernel import PromotedKernel
from forge.projections.state import Cell, Row

CONFIRMATION, FIRST = "confirmation", "first measurement"
"""Values of `source`: the measurement of a benchmark that a row's figures are from."""

# Any: a JSON document, validated when it was recorded
Document = dict[str, Any]


def slot(task: Row | None) -> Row:
    """Return operation, GPU, type and language of the task, as far as the ledger has it."""
    if task is None:
        return {"op": None, "gpu": None, "dtype": None}
    return {"op": task["op"], "gpu": task["gpu"], "dtype": task["dtype"]}


def text(document: Document | list[object]) -> str:
    """Return canonical JSON for a cell."""
    return canonical(document).decode()


def task_row(line: Line) -> Row:
    """Return the row of a task."""
    task = line.event["task"]
    return {
        "task_id": line.event["task_id"],
        "op": task["op"],
        "gpu": task["target"]["gpu"],
        "dtype": task["dtype"],
        "language": task["language"],
        "shape": text(task["shape"]),
        "seq": line.seq,
        "recorded_at": line.recorded_at,
    }


def environment_row(line: Line) -> Row:
    """Return the row of a machine."""
    found = line.event["environment"]
    gpu = found["gpu"] or {}
    return {
        "env_sha256": line.event["env_sha256"],
        "perf_key": line.event["perf_key"],
        "abi_key": line.event["abi_key"],
        "gpu": gpu.get("slug"),
        "gpu_arch": gpu.get("arch"),
        "driver": found["driver"],
        "torch": found["torch"],
        "triton": found["triton"],
        "seq": line.seq,
    }


def candidate_row(line: Line, task: Row | None) -> Row:
    """Return the row of a submission."""
    event = line.event
    return {
        "seq": line.seq,
        "candidate": event["candidate"],
        "run_id": event["run_id"],
        "task_id": event["task_id"],
        **slot(task),
        "language": event["files"]["language"],
        "entry_point": event["files"]["entry_point"],
        "author": event["author"],
        "actor": line.actor,
        "parents": text(event["parents"]),
        "hypothesis": event["hypothesis"],
        "layer": event["layer"],
        "axis": event["axis"],
        "recorded_at": line.recorded_at,
    }


def benchmark_rows(
    line: Line, task: Row | None, environment: Row | None, *, further: Sequence[Document]
) -> list[Row]:
    """Return one row per workload and baseline; a benchmark that measured nothing has one without figures.

    `further` are the measurements at further shapes that the benchmark names, each with a verdict of its own.
    """
    event = line.event
    shared: Row = {
        "seq": line.seq,
        "run_id": event["run_id"],
        "candidate": event["candidate"],
        "task_id": event["task_id"],
        **slot(task),
        "env_sha256": event["env_sha256"],
        **{name: environment[name] if environment else None for name in ("perf_key", "driver", "torch", "triton")},
        "invalidated_seq": None,
        "recorded_at": line.recorded_at,
    }
    lines = [row for workload in event["workloads"] for row in _timings(workload, event["baseline_used"])]
    told = [{**_decided(event.get("reason")), **row} for row in lines or [NOT_MEASURED]]
    for one in further:
        at_shape = _timings(one["timing"], one["baseline_used"]) if one["timing"] else [NOT_MEASURED]
        told += [{**_decided(one["reason"]), **row, "shape": text(one["shape"])} for row in at_shape]
    return [{**shared, "line": number, **row} for number, row in enumerate(told, start=1)]


def _decided(reason: Document | None) -> Row:
    """Return the verdict of a measurement at one shape."""
    if reason is None:
        return {"verdict": "accepted", "reason_code": None}
    return {"verdict": verdict_of(reason), "reason_code": reason["code"]}


NOT_MEASURED: Row = dict.fromkeys(
    (
        "shape",
        "source",
        "candidate_median_ns",
        "floor_fraction",
        "samples_sha256",
        "baseline",
        "baseline_used",
        "baseline_median_ns",
        "speedup",
        "low",
        "high",
    )
)
"""Figures of a row that has none: every cell is None."""


def _timings(workload: Document, baseline_used: str | None) -> list[Row]:
    """Return one row per baseline, confirmed if it was; without a baseline one row with the candidate's own time."""
    first, again = workload, workload.get("confirmation")
    confirmed = {speedup["baseline"]: speedup for speedup in again["speedups"]} if again else {}
    rows: list[Row] = []
    for speedup in first["speedups"]:
        counted = confirmed.get(speedup["baseline"])
        own = _own_time(workload, again, CONFIRMATION) if again and counted else _own_time(workload, first, FIRST)
        rows.append({**own, **_over(counted or speedup, baseline_used)})
    return rows or [_own_time(workload, first, FIRST)]


def _own_time(workload: Document, timed: Document, source: str) -> Row:
    """Return the candidate's own time; `timed` is the workload itself or its confirmation."""
    median_ns = timed["candidate"]["median_ns"]
    return {
        **NOT_MEASURED,
        "shape": text(workload["shape"]),
        "source": source,
        "candidate_median_ns": median_ns,
        "floor_fraction": workload["floor_fraction"] if timed is workload else workload["floor_ns"] / median_ns,
        "samples_sha256": workload["samples_sha256"],
    }


def _over(speedup: Document, baseline_used: str | None) -> Row:
    interval = speedup["interval"]
    return {
        "baseline": speedup["baseline"],
        "baseline_used": speedup["baseline"] == baseline_used,
        "baseline_median_ns": speedup["baseline_median_ns"],
        "speedup": interval["ratio"],
        "low": interval["low"],
        "high": interval["high"],
    }


def verdict_of(reason: Document) -> str:
    """Return the verdict of a refusal: rejected, or inconclusive if it says nothing about the candidate."""
    return "inconclusive" if reason["code"] in UNDECIDED else "rejected"


def rejection_row(line: Line, task: Row | None, *, stage: str) -> Row:
    """Return the row of a refusal at `stage`."""
    event = line.event
    failed = [gate["name"] for gate in event.get("gates", ()) if gate["verdict"] == "failed"]
    return {
        "seq": line.seq,
        "run_id": event["run_id"],
        "candidate": event["candidate"],
        "task_id": event["task_id"],
        **slot(task),
        "stage": stage,
        "gate": failed[0] if failed else None,
        "verdict": verdict_of(event["reason"]),
        "reason_code": event["reason"]["code"],
        "message": event["reason"]["message"],
        "recorded_at": line.recorded_at,
    }


def claim_row(line: Line) -> Row:
    """Return the row of a claim that wasn't assessed yet."""
    event = line.event
    row: Row = {name: event[name] for name in ("run_id", "claim_id", "candidate", "claimant", "metric", "unit")}
    return {
        **row,
        "seq": line.seq,
        "workload": event["workload"],
        "baseline": event["baseline"],
        "claimed": event["value"],
        "measured": None,
        "verdict": None,
        "assessed_seq": None,
        "measured_by_seq": None,
        "recorded_at": line.recorded_at,
    }


def kernel_row(kernel: PromotedKernel) -> dict[str, Cell]:
    """Return the row of a promoted version in its current state."""
    event = kernel.promoted.event
    task = event.task
    return {
        "kernel_id": event.kernel_id,
        "family": event.family,
        "version": event.version,
        "status": kernel.status,
        "status_reason": kernel.standing.reason,
        "status_seq": kernel.status_seq,
        "superseded_by": kernel.superseded_by,
        "deprecated_seq": kernel.standing.deprecated.seq if kernel.standing.deprecated else None,
        "invalidated_seq": kernel.standing.invalidated.seq if kernel.standing.invalidated else None,
        "revoked_seq": kernel.standing.revoked.seq if kernel.standing.revoked else None,
        "evidence": kernel.standing.evidence,
        "held_seq": kernel.standing.held.seq if kernel.standing.held else None,
        "contradicted_seq": kernel.standing.contradicted.seq if kernel.standing.contradicted else None,
        "op": task.op,
        "gpu": task.target.gpu,
        "dtype": task.dtype,
        "language": task.language,
        "shape": text(task.shape),
        "candidate": event.candidate,
        "task_id": event.task_id,
        "run_id": event.run_id,
        "author": event.author,
        "entry_point": event.entry_point,
        "artifact_sha256": event.artifact_sha256,
        "baseline": event.baseline,
        **_figures(kernel),
        "environment_seq": kernel.environment.seq,
        "verified_seq": event.verified_seq,
        "benchmark_seq": event.benchmark_seq,
        "promoted_seq": kernel.promoted.seq,
        "recorded_at": kernel.promoted.recorded_at,
    }


def _figures(kernel: PromotedKernel) -> Row:
    event = kernel.promoted.event
    return {
        "candidate_median_ns": event.candidate_median_ns,
        "baseline_median_ns": event.baseline_median_ns,
        "speedup": event.speedup.ratio,
        "low": event.speedup.low,
        "high": event.speedup.high,
        "policy_sha256": event.policy_sha256,
        "env_sha256": event.env_sha256,
        "perf_key": event.perf_key,
        "abi_key": event.abi_key,
    }
