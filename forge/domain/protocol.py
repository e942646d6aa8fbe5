"""Names the measurement protocols, and says which of them are superseded.

Evidence of a superseded protocol stays in the ledger, but a lookup no longer offers the kernel that rests on it,
unless a second measurement by a current protocol held. To supersede a protocol: its line in `SUPERSEDED`, and the
next `PROJECTOR_VERSION` in `forge.projections`.
"""

from collections.abc import Mapping

from forge.domain.policy import TimingAuthority

SLOPE, REPLAY = "host_slope.v4", "graph_replay.v4"
"""Names of the two current protocols: the host's clock over releases, and windows of graph replays on a device."""
UNNAMED: Mapping[TimingAuthority, str] = {"host_slope": "host_slope.unnamed", "launch_plan": "graph_replay.unnamed"}
"""Name of the protocol of an event that names none, by clock. Only the samples of such an event say which it was."""
SUPERSEDED: Mapping[str, str] = {
    "host_slope.v1": "all baselines ran in one process",
    "host_slope.v2": "a shorter release of the same side was subtracted, which a candidate can lengthen",
    "host_slope.v3": "each call was timed with a copy of its outputs, which a candidate can leave out",
    "graph_replay.v1": "operand sets were used several times in a window",
    "graph_replay.v2": "windows waited for earlier writes",
    "graph_replay.v3": "the baseline was one tuning of torch.compile, which may have been a slow one",
    "graph_replay.unnamed": "the event names no protocol, and most such times are of superseded ones",
}
"""Superseded protocol -> the reason why its times no longer count. A second measurement by one can still contradict
the first."""


def protocol_of(named: str | None, method: TimingAuthority) -> str:
    """Return the protocol that an event names, or the name for events that name none."""
    return named or UNNAMED[method]


def why_superseded(protocol: str) -> str | None:
    """Return why the protocol's times no longer count; None if they do."""
    found = SUPERSEDED.get(protocol)
    return None if found is None else f"measured by {protocol}, which is superseded: {found}"
