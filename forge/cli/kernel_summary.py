"""Shows what matters of a promoted kernel: what it answers, how fast it is, whose it is, and what it had to meet."""

from typing import Any

from forge.cli.document import fact_text
from forge.cli.output import emit_table, shape_text

Entry = dict[str, Any]  # Any: a registry entry, a JSON document
US = 1000.0
"""Nanoseconds in a microsecond, the unit of every time that is shown."""


def show_summary(entry: Entry) -> None:
    """Print a kernel in three tables: facts, times over each baseline, and the requirements that it met."""
    timed = entry["benchmark"]["workloads"][0]
    reported = timed.get("confirmation") or timed
    on_fresh_data = "" if reported is timed else ", on fresh data"
    facts = (
        ("kernel", entry["kernel_id"]),
        ("status", _status(entry)),
        ("operation", f"{entry['op']} at {shape_text(entry['shape'])}, {entry['dtype']}"),
        ("for", f"{entry['target_gpu']}, {entry['language']}"),
        ("speedup", f"{fact_text(entry['speedup'])} over {entry['baseline']}"),
        ("time", f"{entry['candidate_median_ns'] / US:.2f} us, {entry['baseline']} {_baseline_us(entry)} us"),
        *_resident(entry),
        ("replicated", _replicated(entry)),
        ("timed by", f"{timed['candidate']['method']}, control {fact_text(reported['control'])}"),
        (
            "reaches",
            f"{timed['floor_fraction']:.0%} of its floor, the least time for its bytes, its products and a launch",
        ),
        ("verified at", f"{len(entry['coverage']['verified'])} shapes"),
        ("author", entry["author"]),
        ("promoted", f"{entry['created_at']}, event {entry['promoted_seq']}"),
        ("source", entry["source_path"]),
    )
    emit_table("Kernel", ("", ""), facts)
    rows = [
        (one["baseline"], f"{one['baseline_median_ns'] / US:.2f}", fact_text(one["interval"]))
        for one in reported["speedups"]
    ]
    emit_table(f"Over each baseline{on_fresh_data}", ("baseline", "us", "speedup"), rows)
    _show_contenders(entry["benchmark"].get("contenders", []))
    _show_further(entry.get("further_shapes", []))
    met = [(one["name"], one["observed"], one["threshold"]) for one in entry["gates"]]
    emit_table("Requirements that it met", ("requirement", "observed", "threshold"), met)


def _resident(entry: Entry) -> list[tuple[str, str]]:
    """Return the speedup with operands in the cache, if it was measured."""
    found = resident_interval(entry)
    if found is None:
        return []
    return [("resident", f"{fact_text(found)} over {entry['baseline']}, with operands in the last-level cache")]


def resident_interval(entry: Entry) -> Entry | None:
    """Return the interval over the entry's baseline with operands in the cache; None if it wasn't measured."""
    timed = (entry["benchmark"].get("workloads") or [{}])[0]
    timing = (timed.get("residency") or {}).get("timing")
    reported = (timing.get("confirmation") or timing) if timing else {"speedups": ()}
    found = (one["interval"] for one in reported["speedups"] if one["baseline"] == entry["baseline"])
    return next(found, None)


def _replicated(entry: Entry) -> str:
    """Return what a second measurement came to, with its speedup in each regime."""
    found = entry.get("replication")
    if not found:
        return "no: no second measurement that counts has held"
    again = ", ".join(
        f"{one['regime']} {fact_text(one['second'])} over {one['baseline']}" for one in found["comparisons"]
    )
    return f"{found['outcome']} on another occasion: {again}" if again else found["outcome"]


def _show_contenders(standings: list[Entry]) -> None:
    """Print which contenders were not measured beside the kernel, and why."""
    rows = [
        (one["contender"], one["version"] or "", one["standing"]["outcome"], _why_not(one["standing"]))
        for one in standings
        if one["standing"]["outcome"] != "in_full"
    ]
    if rows:
        emit_table("Contenders that were not measured beside it", ("contender", "version", "outcome", "why"), rows)


def _why_not(standing: Entry) -> str:
    if reason := standing.get("reason"):
        return f"{reason['code']}: {reason['message']}"
    if "least_ns" in standing:
        return f"right, and slower than others: about {standing['least_ns'] / US:.2f} us"
    return f"{standing['cause']}: {standing['detail']}"


def _show_further(shapes: list[Entry]) -> None:
    """Print the further shapes of the kernel's task, each with its speedup or the reason against it."""
    if shapes:
        rows = [
            (
                shape_text(one["shape"]),
                f"{one['candidate_median_ns'] / US:.2f}" if one["proven"] else "",
                f"{fact_text(one['speedup'])} over {one['baseline']}" if one["proven"] else one["why_not"],
            )
            for one in shapes
        ]
        emit_table("At further shapes", ("shape", "us", "speedup, or why it isn't proven"), rows)


def _status(entry: Entry) -> str:
    """Return the status with its reason and the kernel that took its place, if there are any."""
    reason = f": {entry['status_reason']}" if entry.get("status_reason") else ""
    instead = f"; superseded by {entry['superseded_by']}" if entry.get("superseded_by") else ""
    return f"{entry['status']}{reason}{instead}"


def _baseline_us(entry: Entry) -> str:
    return f"{entry['baseline_median_ns'] / US:.2f}"
