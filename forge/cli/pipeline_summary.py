"""The summary of a pipeline: for each folder its run, its verdict with the reason, and its speedup."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forge.cli.output import SIMULATED, emit_table

if TYPE_CHECKING:
    from forge.app.work.folder_runs import FolderRun

Answer = dict[str, Any]  # Any: a JSON document, taken apart for people
COLUMNS = ("folder", "run", "verdict", "at", "why", "speedup", "95 % interval", "")


def finished(chosen: "FolderRun", answers: Mapping[str, Answer]) -> Answer:
    """Return the document of one folder: how its last phase ended, its speedup, and every phase's answer."""
    phase, last = list(answers.items())[-1]
    failed = [gate["name"] for gate in last.get("gates") or () if gate["verdict"] == "failed"]
    return {
        "folder": str(chosen.folder),
        "run_id": chosen.run_id,
        "origin": chosen.origin,
        "verdict": last["verdict"],
        "simulated": any(answer.get("simulated") for answer in answers.values()),
        "phase": phase,
        "gate": failed[-1] if failed else None,
        "reason": last["reason"],
        "kernel_id": last.get("kernel_id"),
        "speedup": speedup_of(answers.get("bench")),
        "phases": dict(answers),
    }


def speedup_of(benchmark: Answer | None) -> Answer | None:
    """Return the speedup over the baseline that had to be beaten, at the first shape; None if it wasn't measured."""
    if benchmark is None or not benchmark.get("workloads") or benchmark["baseline_used"] is None:
        return None
    timed = benchmark["workloads"][0]
    against = (timed["confirmation"] or timed)["baselines"].get(benchmark["baseline_used"])
    if against is None:
        return None
    return {"baseline": benchmark["baseline_used"], "ratio": against["speedup"], "ci95": against["ci95"]}


def show_summary(results: Sequence[Answer]) -> None:
    """Print one row for each folder."""
    emit_table("Pipeline", COLUMNS, [_row(one) for one in results])


def _row(one: Answer) -> tuple[str, ...]:
    verdict = f"{one['verdict']} ({SIMULATED})" if one["simulated"] else one["verdict"]
    origin = one["origin"] if one["origin"] in ("taken up", "decided before") else ""
    return (one["folder"], one["run_id"], verdict, one["phase"], _why(one), *_speedup(one["speedup"]), origin)


def _why(one: Answer) -> str:
    if one["reason"] is None:
        return one["kernel_id"] or ""
    code: str = one["reason"]["code"]
    return f"{one['gate']}: {code}" if one["gate"] else code


def _speedup(found: Answer | None) -> tuple[str, str]:
    if found is None:
        return "", ""
    low, high = found["ci95"]
    return f"{found['ratio']:.3f}x over {found['baseline']}", f"{low:.3f} to {high:.3f}x"
