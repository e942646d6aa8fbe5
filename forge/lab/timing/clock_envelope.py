"""Compares two clocks on the same replays: the host's, and the events of the device.

Both cover the same replays, since a window finds another cache: nothing in it waits to be written. A replay directly
follows one that has left such bytes.
"""

import statistics
from collections.abc import Mapping, Sequence

from forge.domain.verdict import Reason
from forge.lab.finding import Failed

ENVELOPE = 0.03
"""Relative difference that is allowed between the host's slope and the device's events. Twice the spread of the
host's slope is allowed if that is more. A launcher could misstate a time by that much without being found. That is
under a third of the 10 % that a promotion usually asks."""
BETWEEN_REPLAYS_NS = 5_000
"""Nanoseconds allowed on top of `ENVELOPE` for a graph's own start, which lies between two replays but not between
the events. It takes 1 to 5 us on an H200, which is more than the envelope if a window takes less than 0.1 ms."""


def clocks_agree(
    slope_ns: float, by_events_ns: float, window_ns: float, allowed: float, *, cached_write_ns: float = 0.0
) -> bool:
    """Return whether the host's time for a replay agrees with the events of the replays and of the windows.

    The time must match the replays' events, and must not exceed the windows' events. `cached_write_ns` is the time to
    write out what a window leaves in the cache, since each replay waits for the one before.
    """
    most_ns = min((1 + allowed) * by_events_ns, (1 + allowed) * window_ns + cached_write_ns) + BETWEEN_REPLAYS_NS
    return (1 - allowed) * by_events_ns <= slope_ns <= most_ns


def compared(
    times: Mapping[int, Sequence[int]], replayed_ns: Sequence[int], window_ns: float, *, cached_write_ns: float
) -> tuple[float, Failed | None]:
    """Return the slope over the events' time, and why the clocks disagree; None if they agree.

    `times` are the host's nanoseconds by number of replays, for one replay and for more.
    """
    one, more = sorted(times)
    slope_ns = (min(times[more]) - min(times[one])) / (more - one)
    spread = (statistics.median(times[more]) - min(times[more])) / ((more - one) * window_ns)
    by_events_ns = statistics.median(replayed_ns)
    ratio, allowed = slope_ns / by_events_ns, max(ENVELOPE, 2 * spread)
    if clocks_agree(slope_ns, by_events_ns, window_ns, allowed, cached_write_ns=cached_write_ns):
        return ratio, None
    message = (
        f"the host's clock says {slope_ns:.0f} ns a replay, {ratio:.3f} times what the device's events say; "
        f"allowed {1 - allowed:.2f} to {1 + allowed:.2f} and {BETWEEN_REPLAYS_NS} ns. By events a window "
        f"took {window_ns:.0f} ns, and writing back what it left {cached_write_ns:.0f} ns"
    )
    reason = Reason(code="CLOCK_DISAGREES", message=message)
    return ratio, Failed(reason=reason, observed=message, threshold="both agree")
