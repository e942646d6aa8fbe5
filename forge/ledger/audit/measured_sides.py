"""Compares the sides of a measurement with what its task asks for and with what became of each contender."""

from collections.abc import Iterator

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.samples import CONTENDER, Document

_ALWAYS_THERE = ("eager", "compile")
"""Baselines that every operation has: if a task names one, each of its measurements has its times."""


def side_differences(
    event: Document, task: Document, recorded: Document, policy: Document | None, *, chosen_anew: bool
) -> Iterator[Difference]:
    """Yield each baseline that is missing, and each contender that its standing or others contradict.

    `chosen_anew` says that no earlier attempt of the run had chosen its contenders.
    """
    timed = [str(one["baseline"]) for one in recorded["speedups"]]
    for kind in _ALWAYS_THERE:
        if kind in task["baselines"] and kind not in timed:
            yield "workloads[0].speedups", f"the task's baseline {kind!r}", ", ".join(timed)
    if "contenders" not in event:
        return
    named = {f"{CONTENDER}{one['contender']}@{one['version'] or 0}": one for one in event["contenders"]}
    standings = {name: one["standing"] for name, one in named.items()}
    in_full = sorted(name for name, one in standings.items() if one["outcome"] == "in_full")
    yield from differences(in_full, sorted(side for side in timed if side.startswith(CONTENDER)), "contenders")
    if chosen_anew:
        yield from _left_out(standings)
    yield from _required(event, () if policy is None else policy.get("required_contenders", ()))


def _left_out(standings: dict[str, Document]) -> Iterator[Difference]:
    """Yield each contender that was left out as slower, and isn't: all are timed by one clock before the choice."""
    slower = [one["least_ns"] for one in standings.values() if one["outcome"] == "slower"]
    chosen = [one["least_ns"] for one in standings.values() if one["outcome"] == "in_full"]
    failed = any(one["outcome"] == "failed" for one in standings.values())  # perhaps one that had been chosen
    if slower and not chosen and not failed:
        yield "contenders", "the fastest in full", "none"
    if slower and chosen and min(slower) < max(chosen):
        yield "contenders", f"none faster than {max(chosen)!r} ns left out", repr(min(slower))


def _required(event: Document, required: list[str] | tuple[str, ...]) -> Iterator[Difference]:
    """Yield each contender that the policy requires, that applies, and that wasn't there."""
    for one in event["contenders"]:
        name, standing = one["contender"], one["standing"]
        is_asked = any(name == asked or name.startswith(f"{asked}.") for asked in required)
        if is_asked and standing["outcome"] == "absent" and standing["cause"] != "not_applicable":
            yield f"contenders.{name}", "there, as the policy requires", standing["cause"]
