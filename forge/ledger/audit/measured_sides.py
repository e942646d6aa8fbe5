"""Compares the sides of a measurement with what its task asks for and with what became of each contender."""

from collections.abc import Iterator

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.samples import CONTENDER, Document

_ALWAYS_THERE = ("eager", "compile")
"""Baselines that every operation has: if a task names one, each of its measurements has its times."""
_LEAST_SHARE = 0.5
"""Share of the fastest baseline's median time above which a contender lies that was left out as slower. Chosen: the
choice of a run stays for its later attempts, whose screening may see other times."""


def side_differences(
    event: Document, task: Document, recorded: Document, policy: Document | None
) -> Iterator[Difference]:
    """Yield each baseline that is missing, and each contender whose standing its times contradict."""
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
    least_ns = _LEAST_SHARE * min(one["baseline_median_ns"] for one in recorded["speedups"])
    for name, one in standings.items():
        if one["outcome"] == "slower" and one["least_ns"] < least_ns:
            yield f"contenders.{name}", f"slower than {least_ns!r} ns, or timed in full", f"{one['least_ns']!r} ns"
    yield from _required(event, () if policy is None else policy.get("required_contenders", ()))


def _required(event: Document, required: list[str] | tuple[str, ...]) -> Iterator[Difference]:
    """Yield each contender that the policy requires, that applies, and that wasn't there."""
    for one in event["contenders"]:
        name, standing = one["contender"], one["standing"]
        is_asked = any(name == asked or name.startswith(f"{asked}.") for asked in required)
        if is_asked and standing["outcome"] == "absent" and standing["cause"] != "not_applicable":
            yield f"contenders.{name}", "there, as the policy requires", standing["cause"]
