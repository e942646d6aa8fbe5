"""Prints the comparison of two runs: states, sources, the gates that differ, and times."""

from typing import Any

from forge.cli.candidate_log import MARK, write_line
from forge.cli.output import SIMULATED, emit_table, say, shape_text, short

Data = dict[str, Any]  # Any: a JSON document, taken apart for people
WIDEST_LINE = 240
"""Largest number of characters of a printed line of a source; a longer line is cut."""


def show_comparison(found: Data) -> None:
    """Print the comparison as tables, and the sources' differences line by line."""
    rows = [(side, *_state_row(run)) for side, run in zip("ab", found["runs"], strict=True)]
    emit_table("Runs", ("", "run", "state", "candidate", "author", "why"), rows)
    if not found["same_task"]:
        tasks = " and ".join(run["task_id"] for run in found["runs"])
        say(f"note: the runs are of two tasks, {tasks}: their gates and times answer different questions")
    _show_sources(found["sources"])
    if found["gates"]:
        gates = [_gate_row(one) for one in found["gates"]]
        emit_table("Gates that differ", ("gate", "a", "a observed", "b", "b observed"), gates)
    else:
        say("gates: none differs")
    _show_times(found)


def _state_row(run: Data) -> tuple[str, ...]:
    state = f"{run['state']} ({SIMULATED})" if run["simulated"] else run["state"]
    why = run["reason"]["code"] if run["reason"] else run["kernel_id"] or ""
    return run["run_id"], state, short(run["candidate"] or ""), run["author"] or "", why


def _gate_row(one: Data) -> tuple[str, ...]:
    sides = [(side["verdict"], side["observed"]) if side else ("not reached", "") for side in (one["a"], one["b"])]
    return one["name"], *sides[0], *sides[1]


def _show_sources(sources: list[Data]) -> None:
    if not sources:
        say("sources: neither run has a candidate")
        return
    emit_table("Sources", ("file", ""), [(one["file"], one["change"]) for one in sources])
    for one in sources:
        if one["untrusted_lines"] is None:
            say(f"{one['file']}: too long to be compared line by line")
        for line in one["untrusted_lines"] or ():
            cut = line if len(line) <= WIDEST_LINE else f"{line[:WIDEST_LINE]} ({len(line) - WIDEST_LINE} more)"
            write_line(MARK + cut)


def _show_times(found: Data) -> None:
    rows = [row for side in ("a", "b") for row in _time_rows(side, found["times"][side])]
    if not rows:
        say("times: neither run was timed")
        return
    emit_table("Times", ("run", "shape", "candidate us", "over", "speedup", "95 % interval"), rows)
    if found["same_machine"] is False:
        say("note: the runs were timed on different kinds of machines: their times don't compare")
    elif found["same_machine"]:
        say("note: the runs weren't timed side by side: compare speedups over the same baseline, by their intervals")


def _time_rows(side: str, times: Data | None) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for workload in times["workloads"] if times else ():
        timed = workload["confirmation"] or workload
        first = (side, shape_text(workload["shape"]), f"{timed['candidate_ns'] / 1000:.2f}")
        for baseline, against in timed["baselines"].items():
            low, high = against["ci95"]
            rows.append((*first, baseline, f"{against['speedup']:.3f}x", f"{low:.3f} to {high:.3f}x"))
    return rows
