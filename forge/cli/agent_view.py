"""Prints sessions: live, event by event, and their states, replays and costs."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forge.cli.output import emit_json, emit_json_line, emit_table, say, visible

if TYPE_CHECKING:
    from forge.pipeline.sessions.transcript import Replayed

Data = Mapping[str, Any]  # Any: a JSON document, taken apart for people


def live(*, as_json: bool) -> Callable[[Data], None]:
    """Return what prints each thing that happens in a session: a line for people, or a document on a line."""

    def show(line: Data) -> None:
        if as_json:
            emit_json_line(line)
        else:
            sys.stdout.write(visible(_line(line)).replace("\n", r"\n") + "\n")
            sys.stdout.flush()

    return show


def _line(line: Data) -> str:
    where = f"round {line['round']}: " if line["round"] else ""
    if line["event"] != "RoundClosed":
        return f"{where}{line['said']}"
    left = line["left"]
    return f"{where}{line['said']} [{_best(line)}; {left['candidates']} candidates, {_minutes(left)} left]"


def _best(found: Data) -> str:
    best = found["best"]
    return "nothing measured yet" if best is None else f"best {best['ratio']:.3f}x over eager"


def _minutes(amounts: Data) -> str:
    return f"{amounts['wall_ms'] / 60_000:.1f} min"


def _dollars(amounts: Data) -> str:
    return f"${amounts['micro_dollars'] / 1_000_000:.2f}"


def show_state(found: Data, *, as_json: bool, one_line: bool = False) -> None:
    """Print where a session stands."""
    if as_json:
        (emit_json_line if one_line else emit_json)(found)
        return
    used = found["used"]
    rows = [
        ("session", found["session_id"]),
        ("state", found["state"]),
        ("", found["detail"]),
        ("rounds", found["rounds"]),
        ("promoted", ", ".join(found["kernels"]) or "none"),
        ("best", _best(found)),
        ("used", f"{used['candidates']} candidates, {_minutes(used)}, {_dollars(used)}"),
    ]
    emit_table("Session", ("", ""), [row for row in rows if row[1] is not None])


def show_sessions(found: Sequence[Data]) -> None:
    """Print a table of sessions."""
    columns = ("session", "author", "state", "rounds", "promoted", "best", "used")
    rows = [
        (
            *(one["session_id"], one["author"], one["state"], one["rounds"], len(one["kernels"]), _best(one)),
            f"{one['used']['candidates']} candidates, {_minutes(one['used'])}, {_dollars(one['used'])}",
        )
        for one in found
    ]
    emit_table("Sessions", columns, rows)


def show_replay(session_id: str, found: "Replayed", *, as_json: bool) -> None:
    """Print the result of a replay."""
    if as_json:
        differences = [
            {"seq": one.seq, "type": one.type, "field": one.field, "recorded": one.recorded, "replayed": one.replayed}
            for one in found.divergences
        ]
        emit_json(
            {"session_id": session_id, "events": found.events, "closed": found.closed, "divergences": differences}
        )
        return
    rows = [(one.seq, one.type, one.field, one.recorded, one.replayed) for one in found.divergences]
    if rows:
        emit_table("Differences", ("event", "type", "field", "recorded", "replayed"), rows)
    else:
        emit_table("Replay", ("session", "events", "result"), [(session_id, found.events, "equal payloads")])


def show_costs(found: Data) -> None:
    """Print what authors used and achieved."""
    columns = (
        "author",
        "model",
        "prompt",
        "candidates",
        "correct",
        "fast_1",
        "promoted",
        "device time",
        "each kernel",
    )
    rows = [
        (
            *(one["author"], one["model"] or "-", one["prompt"] or "-", one["candidates"]),
            *(f"{one['correctness_rate']:.0%}", f"{one['fast_1']:.0%}", one["promoted"]),
            f"{one['used']['device_ms'] / 1000:.1f} s",
            _each(one["per_promoted_kernel"]),
        )
        for one in found["authors"]
    ]
    emit_table("Authors, every candidate counted", columns, rows)
    screening = found["screening"]
    if screening["drafts"]:
        heads = ("draft", "screened", "again", "confirmed", "over first baseline")
        measured = ("screened", "screened_again", "confirmed", "over_first_baseline")
        gains = [(one["draft"][:12], *(_times(one[name]) for name in measured)) for one in screening["drafts"]]
        emit_table("Gains over the template's own setting", heads, gains)
    if screening["counted"]:
        shrunk = _times(screening["median_confirmed_over_screened"])
        say(f"confirmed gains are {shrunk} the screened ones, the median of {screening['counted']} drafts")


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}x"


def _each(shared: Data | None) -> str:
    if shared is None:
        return "none promoted"
    return f"{shared['candidates']:.1f} candidates, {shared['device_ms'] / 1000:.1f} s, {_dollars(shared)}"
