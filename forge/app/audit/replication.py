"""Answers whether first measurements hold: each replication, the share that held, the spread between sessions."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from forge.app.audit.answer import Answer, Cell, Named, named_rows, number
from forge.app.plain_events import HasEvents
from forge.domain.machine_name import MachineName, is_same_machine
from forge.lab.timing.session_spread import FEWEST_REPLICATIONS, log_difference, session_spread
from forge.ledger.plain_rows import PlainEvent

COLUMNS = (
    *("kernel_id", "status", "evidence", "points", "regime", "baseline", "first", "first_low", "first_high"),
    *("second", "second_low", "second_high", "difference", "allowed", "outcome", "another_machine", "why"),
    *("benchmark_seq", "replication_seq"),
)
SHOWN = (
    *("kernel_id", "status", "points", "regime", "baseline", "first", "second", "difference", "outcome"),
    *("another_machine", "why"),
)
KERNELS = """
    SELECT kernel_id, status, evidence, benchmark_seq, env_sha256, (
        SELECT count(DISTINCT point.shape) FROM benchmarks AS point
        WHERE point.seq = kernels.benchmark_seq AND point.verdict = 'accepted'
    ) AS points FROM kernels ORDER BY kernel_id
"""
"""Query for each kernel with the number of shapes that its benchmark accepted."""
SLOWER_BASELINE = "the baseline was slower this time, and the kernel's own time the same"
"""Words for a replication that held although its ratio is larger than sessions may differ by."""
Document = Mapping[str, Any]  # Any: a JSON document, validated when it was recorded


class IntervalRow(NamedTuple):
    """A ratio and its 95 % interval."""

    ratio: float
    low: float
    high: float


class ComparisonRow(NamedTuple):
    """What the spread between sessions is estimated from: two intervals, and the process pairs behind each."""

    first: IntervalRow
    first_pairs: int
    second: IntervalRow
    second_pairs: int


def replication(workspace: HasEvents) -> Answer:
    """Return each replication beside its first measurement, and what all of them say of the spread."""
    with workspace.publication.tables() as connection:
        kernels = {str(row["kernel_id"]): row for row in named_rows(connection, KERNELS)}
    machines = _machines(workspace)
    found = workspace.events("ReplicationRecorded")
    elsewhere = {one.seq: _another_machine(workspace, machines, one) for one in found}
    rows = [row for one in found for row in _rows(one, kernels[one.event["kernel_id"]], elsewhere[one.seq])]
    decided = [one for one in found if one.event["outcome"] != "inconclusive"]
    held = sum(one.event["outcome"] == "held" for one in decided)
    on_offer = [row for row in kernels.values() if row["status"] == "active"]
    spreads = _spreads(found, elsewhere)
    several = sum(number(row["points"]) > 1 for row in on_offer)
    replicated = sum(row["evidence"] == "replicated" for row in on_offer)
    return Answer(
        f"Replications: {held} of {len(decided)} held" if decided else "No replications yet",
        COLUMNS,
        tuple(rows),
        notes=(
            f"of {len(on_offer)} kernels on offer, {replicated} are replicated and {len(on_offer) - replicated} "
            "provisional: no second measurement that counts has held",
            *((f"{several} of them have several shapes: the main one alone is replicated",) if several else ()),
            *(f"spread between sessions, {_said(one)}" for one in spreads),
            "an interval of one measurement leaves this spread out",
        ),
        shown=SHOWN,
        more={
            "replications": len(found),
            "decided": len(decided),
            "held": held,
            "share_held": held / len(decided) if decided else None,
            "on_offer": len(on_offer),
            "replicated": replicated,
            "session_spread": spreads,
        },
    )


def _machines(workspace: HasEvents) -> dict[str, Document]:
    return {one.event["env_sha256"]: one.event["environment"] for one in workspace.events("EnvironmentCaptured")}


def _another_machine(workspace: HasEvents, machines: Mapping[str, Document], one: PlainEvent) -> bool:
    """Return whether the second measurement was on another machine than the first."""
    first = workspace.event(one.event["benchmark_seq"])
    assert first.type == "BenchmarkRecorded", "the registry's fold has checked it"
    then, now = _machine(machines[first.event["env_sha256"]]), _machine(machines[one.event["env_sha256"]])
    return not is_same_machine(then, now)


def _machine(environment: Document) -> MachineName:
    gpu = environment["gpu"]
    return MachineName(gpu["uuid"] if gpu else None, environment["host_sha256"])


def _rows(one: PlainEvent, kernel: Named, another_machine: bool) -> Iterable[tuple[Cell, ...]]:
    event, reason = one.event, one.event["reason"]
    why = f"{reason['code']}: {reason['message']}" if reason else None
    ends = (event["benchmark_seq"], one.seq)
    begins = (event["kernel_id"], kernel["status"], kernel["evidence"], kernel["points"])
    if not event["comparisons"]:
        yield (*begins, *(None,) * 10, event["outcome"], another_machine, why, *ends)
    for found in event["comparisons"]:
        first, second = found["first"], found["second"]
        difference, allowed = second["ratio"] / first["ratio"] - 1, found["session_spread"]
        figures = (*(first[name] for name in IntervalRow._fields), *(second[name] for name in IntervalRow._fields))
        same_kernel = abs(math.log(found.get("kernel_ratio") or math.inf)) <= math.log1p(allowed)
        said = SLOWER_BASELINE if why is None and difference > allowed and same_kernel else why
        compared = (found["regime"], found["baseline"], *figures, difference, allowed)
        yield (*begins, *compared, event["outcome"], another_machine, said, *ends)


def _compared(found: Document) -> ComparisonRow:
    first, second = (
        IntervalRow(*(found[which][name] for name in IntervalRow._fields)) for which in ("first", "second")
    )
    return ComparisonRow(first, found["first_pairs"], second, found["second_pairs"])


def _spreads(found: Iterable[PlainEvent], elsewhere: Mapping[int, bool]) -> list[dict[str, object]]:
    """Return the spread by clock and regime: of all replications, and of those on another machine."""
    answers: list[dict[str, object]] = []
    groups: dict[tuple[str, str], list[tuple[int, ComparisonRow]]] = {}
    for one in found:
        for comparison in one.event["comparisons"]:
            method = one.event["workloads"][0]["candidate"]["method"]
            groups.setdefault((method, comparison["regime"]), []).append((one.seq, _compared(comparison)))
    for (clock, regime), pairs in sorted(groups.items()):
        for across, of in (
            ("sessions and machines", [one for _, one in pairs]),
            ("machines", [one for seq, one in pairs if elsewhere[seq]]),
        ):
            known = session_spread(of)
            answers.append(
                {
                    "method": clock,
                    "regime": regime,
                    "across": across,
                    "replications": len(of),
                    "fewest": FEWEST_REPLICATIONS,
                    "tau": known.tau if known else None,
                    "difference": known.difference if known else None,
                    "largest_seen": max((abs(log_difference(one)) for one in of), default=None),
                }
            )
    return answers


def _said(one: dict[str, object]) -> str:
    what = f"{one['method']}, {one['regime']}, across {one['across']}"
    if one["difference"] is None:
        return f"{what}: unknown: {one['replications']} replications, fewer than {one['fewest']}"
    return (
        f"{what}: two measurements differ by up to {one['difference']:.1%} in 95 % of cases, beyond their intervals"
    )
