"""A benchmark's numbers as tables."""

from typing import Any

from forge.cli.output import emit_table, shape_text

Answer = dict[str, Any]  # Any: a JSON document, taken apart for people
COLUMNS = ("side", "median us", "of the floor", "speedup", "95 % interval")
_TITLES = {
    "baseline_stands": "baseline stands",
    "bad_baseline": "bad baseline",
    "contender_stands": "contender stands",
}


def show_workloads(answer: Answer) -> None:
    """Print a table of the measured times for each shape, with the notes about it."""
    for workload in answer.get("workloads", []):
        emit_table(f"{shape_text(workload['shape'])} ({workload['method']})", COLUMNS, _rows(workload))
        facts = [(_TITLES[note["code"]], note["message"]) for note in workload["notes"]] + _facts(workload)
        if facts:
            emit_table("", ("", ""), facts)
    if answer.get("stopped"):
        _show_stop(answer["stopped"])
    _show_further(answer.get("further_shapes", []))
    contenders = answer.get("contenders", [])
    if contenders:
        rows = [(one["contender"], one["version"] or "", one["outcome"], one["said"]) for one in contenders]
        emit_table("Contenders", ("contender", "version", "outcome", "why"), rows)


def _show_stop(stop: Answer) -> None:
    """Print the figures of the pair after which a benchmark stopped."""
    rows = [
        ("candidate, median us", _us(stop["candidate_median_ns"])),
        (f"{stop['baseline']}, median us", _us(stop["baseline_median_ns"])),
        ("speedup, median of the rounds", f"{stop['ratio']:.3f}x"),
        ("eager against itself", f"{stop['control']:.3f}x"),
        (
            "with all noise in its favour",
            f"{stop['most_favourable']:.3f}x; a stop needs less than {stop['limit']:g}x",
        ),
    ]
    emit_table("Stopped after the first process pair", ("", ""), rows)


def _show_further(shapes: list[Answer]) -> None:
    """Print the tables of the further shapes that were timed, and the verdict at each."""
    for one in shapes:
        if one["timing"]:
            timing = one["timing"]
            emit_table(f"{shape_text(one['shape'])} ({timing['method']})", COLUMNS, _rows(timing))
    if shapes:
        rows = [
            (shape_text(one["shape"]), one["verdict"], one["reason"]["message"] if one["reason"] else "")
            for one in shapes
        ]
        emit_table("Further shapes", ("shape", "verdict", "why"), rows)


def _rows(workload: Answer) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("candidate", _us(workload["candidate_ns"]), f"{workload['floor_fraction']:.0%}", "", "")
    ]
    rows += [(kind, *_against(one)) for kind, one in workload["baselines"].items()]
    rows.append(("eager against itself", "", "", "", _interval(workload["control"])))
    again = workload["confirmation"]
    if again:
        rows.append(("confirmation: candidate", _us(again["candidate_ns"]), "", "", ""))
        rows += [(f"confirmation: {kind}", *_against(one)) for kind, one in again["baselines"].items()]
        rows.append(("confirmation: eager against itself", "", "", "", _interval(again["control"])))
    if workload["harness_ns"]:
        rows.append(("the path itself", _us(workload["harness_ns"]), "", "", ""))
    rows += _resident_rows(workload["residency"])
    rows.append(("floor", _us(workload["floor_ns"]), "", "", ""))
    return rows


def _resident_rows(residency: Answer | None) -> list[tuple[str, ...]]:
    """Return the rows of the resident regime, if it was measured."""
    timing = residency["timing"] if residency else None
    if not timing:
        return []
    rows: list[tuple[str, ...]] = []
    rows.append(("resident: candidate", _us(timing["candidate_ns"]), f"{timing['floor_fraction']:.0%}", "", ""))
    rows += [(f"resident: {kind}", *_against(one)) for kind, one in timing["baselines"].items()]
    again = timing["confirmation"]
    if again:
        rows += [(f"resident, confirmation: {kind}", *_against(one)) for kind, one in again["baselines"].items()]
    rows.append(("resident: eager against itself", "", "", "", _interval(timing["control"])))
    return rows


def _against(one: Answer) -> tuple[str, str, str, str]:
    return _us(one["median_ns"]), f"{one['floor_fraction']:.0%}", f"{one['speedup']:.3f}x", _interval(one["ci95"])


def _facts(workload: Answer) -> list[tuple[str, str]]:
    replay, residency = workload["replay"], workload["residency"]
    told = [("resident regime", residency["why_not"])] if residency and residency["why_not"] else []
    if not replay:
        return told
    host = replay["host_ratio"]
    return [
        *told,
        ("operand sets", f"{replay['sets']} of {replay['set_bytes'] / 2**20:.2f} MiB, used in turn"),
        ("host's clock / device's", f"{min(host):.3f} to {max(host):.3f}"),
        ("blocks", f"{replay['blocks']}, of which {replay['dropped']} were disturbed from outside and left out"),
        ("device time used", f"{replay['gpu_s']:.2f} s"),
    ]


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.2f}"


def _interval(ends: list[float]) -> str:
    return f"{ends[0]:.3f} to {ends[1]:.3f}x"
