"""Decides whether evidence from one processor says anything about another: only if they are the same model.

A speed depends on bandwidth, caches, clocks, power and drivers together. So no ratio of data sheets transfers a
measurement. The reasons are ordered from the largest difference to the smallest, and the first that applies is given.
"""

from forge.platforms.processor import Market, Processor

_SOLD_FOR: dict[Market, str] = {
    "consumer": "a consumer card",
    "workstation": "a workstation card",
    "data_centre": "a data-centre GPU",
    "apple": "an Apple processor",
    "cpu": "a host processor",
}


def evidence_reach(measured: Processor, claimed: Processor) -> str | None:
    """Return None if evidence from `measured` supports a claim about `claimed`, else the reason why it doesn't."""
    if measured.slug == claimed.slug:
        return None
    if measured.platform != claimed.platform:
        return f"{measured.name} is of the platform {measured.platform} and {claimed.name} is of {claimed.platform}"
    if measured.market != claimed.market:
        return (
            f"{measured.name} is {_SOLD_FOR[measured.market]} and {claimed.name} is {_SOLD_FOR[claimed.market]}: "
            "the one proves nothing about the other"
        )
    if measured.arch != claimed.arch:
        return f"{measured.name} is {measured.arch} and {claimed.name} is {claimed.arch}: another architecture"
    return (
        f"{measured.name} and {claimed.name} are different models of {measured.arch}: "
        "bandwidth, caches and power differ, and nothing was measured there"
    )
