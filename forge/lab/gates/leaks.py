"""Does it give back what it takes, or does its process hold more after every few thousand calls?

A workspace that is never freed passes every other question, and ends the server that calls it for hours. The numbers
are the kernel's, of memory that the guest's processes hold for themselves while they stand still. The question comes
before those at large shapes: memory that they leave free is taken again without a trace.
"""

from itertools import pairwise

from forge.domain.verdict import Reason
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.observed import Case
from forge.lab.probe import Probe

WINDOWS = 3
"""In a row: what is collected only now and then doesn't grow in all of them."""
FEWEST, CALLS, WINDOW_S = 2, 8192, 0.2
"""So many calls in a window, or what a slow candidate makes in that time."""
SETTLING = 3
"""Rows of calls before: each says better than the one before how many fit into a window."""
GROWN_BYTES = 2**22
"""What an allocator or a collector may keep between one window and the next: 512 bytes for each of 8,192 calls."""
THRESHOLD = f"less than {GROWN_BYTES // 2**20} MiB more in one of {WINDOWS} rows of calls"


def examine(probe: Probe) -> Finding:
    """Make calls until it has settled, then rows of them, and look at its memory after each."""
    if probe.interpreted or probe.device != "cpu":
        return Passed(observed="not asked: the calls aren't a processor's own", threshold=THRESHOLD)
    case = probe.case(probe.shape)
    calls, held = FEWEST, []
    for row in range(SETTLING + WINDOWS):
        took_ns = _row(probe, case, calls)
        if isinstance(took_ns, Failed):
            return took_ns
        if row < SETTLING:
            calls = max(FEWEST, min(CALLS, int(calls * WINDOW_S * 1e9 / took_ns)))
        if row >= SETTLING - 1:
            held.append(probe.held_bytes)
    if not all(held):
        return Passed(observed="not seen: this machine shows nobody a guest's memory", threshold=THRESHOLD)
    return _compared(calls, [after - before for before, after in pairwise(held)])


def _row(probe: Probe, case: Case, calls: int) -> int | Failed:
    """Nanoseconds that so many calls took."""
    observed = probe.call([case], cycles=calls)
    if isinstance(observed, Failed):
        return observed
    return probe.wrong(observed[0]) or max(1, observed[0].elapsed_ns)


def _compared(calls: int, grown: list[int]) -> Finding:
    said = f"{', '.join(f'{more / 2**20:+.1f}' for more in grown)} MiB after rows of {calls} calls"
    if min(grown) < GROWN_BYTES:
        return Passed(observed=said, threshold=THRESHOLD)
    message = f"its process holds more after every row of {calls} calls: about {min(grown) // calls} bytes for each"
    return Failed(reason=Reason(code="RESOURCE_ABUSE", message=message), observed=said, threshold=THRESHOLD)


LEAKS = Gate(name="leaks", examine=examine)
