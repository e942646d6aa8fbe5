"""Does it give back what it takes, or does its process hold more after every few thousand calls?

A workspace that is never freed passes every other question, and ends the server that calls it for hours. The numbers
are the kernel's, and the GPU driver's, of memory that the guest's processes and files take while they stand still.
The question comes before those at large shapes: memory that they leave free is taken again without a trace.
"""

from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.shape_budget import affordable
from forge.lab.observed import Case

WINDOWS, MOST_WINDOWS = 3, 12
"""Rows of calls: what is collected only now and then doesn't grow in all of them, a pool not in so many. More than
three are made only where these all grow."""
MOST_SHARE = 1 / 8
"""Of the memory that a guest may have, which a pool may take: beyond, no further row is made."""
FEWEST, CALLS, WINDOW_S = 2, 8192, 0.15
"""So many calls in a row, or what a slow candidate makes in that time."""
SLOW_S = 1.5
"""Of the fewest calls: a candidate that takes so long isn't asked to settle any further."""
SETTLING = 3
"""Rows before, at most: each says better than the one before how many calls fit."""
GROWN_BYTES = 2**22
"""What an allocator or a collector may keep between one row and the next: 512 bytes for each of 8,192 calls."""
THRESHOLD = f"less than {GROWN_BYTES // 2**20} MiB more in one of {WINDOWS} rows of calls"


def examine(kernel: LoadedKernel) -> Finding:
    """Ask at the public shape, and where tails have code of their own."""
    if kernel.interpreted:
        return Passed(observed="not asked: an interpreter makes the calls, not a device", threshold=THRESHOLD)
    if not kernel.held_bytes:
        return Passed(observed="not seen: this machine shows nobody a guest's memory", threshold=THRESHOLD)
    cases = [kernel.case(kernel.shape)]
    if kernel.operation.own is None:
        rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
        odd = {**kernel.shape, rows: 2 * kernel.shape[rows] + 1, reduced: kernel.shape[reduced] // 2 * 2 + 1}
        cases.append(kernel.case(affordable(kernel.operation, odd, kernel.shape)))
    said = []
    for case in cases:
        finding = _at(kernel, case)
        if isinstance(finding, Failed):
            return finding
        said.append(finding.observed)
    return Passed(observed="; ".join(said), threshold=THRESHOLD)


def _at(kernel: LoadedKernel, case: Case) -> Finding:
    """Make calls until it has settled, then rows of them, and look at its memory after each."""
    calls = FEWEST
    for _ in range(SETTLING):
        took_ns = _row(kernel, case, calls)
        if isinstance(took_ns, Failed):
            return took_ns
        if took_ns >= SLOW_S * 1e9:
            break
        calls = max(FEWEST, min(CALLS, int(calls * WINDOW_S * 1e9 / took_ns)))
    held, grown = kernel.held_bytes, list[int]()
    while len(grown) < WINDOWS or _may_be_a_pool(grown, kernel.policy.memory_limit_bytes):
        took_ns = _row(kernel, case, calls)
        if isinstance(took_ns, Failed):
            return took_ns
        before, held = held, kernel.held_bytes
        grown.append(held - before)
    return _compared(calls, grown)


def _may_be_a_pool(grown: list[int], limit_bytes: int) -> bool:
    return len(grown) < MOST_WINDOWS and min(grown) >= GROWN_BYTES and sum(grown) < MOST_SHARE * limit_bytes


def _row(kernel: LoadedKernel, case: Case, calls: int) -> int | Failed:
    """Nanoseconds that so many calls took; whether they are right is asked elsewhere."""
    observed = kernel.call([case], cycles=calls)
    return observed if isinstance(observed, Failed) else max(1, observed[0].elapsed_ns)


def _compared(calls: int, grown: list[int]) -> Finding:
    said = f"{', '.join(f'{more / 2**20:+.1f}' for more in grown)} MiB after rows of {calls} calls"
    if min(grown) < GROWN_BYTES:
        return Passed(observed=said, threshold=THRESHOLD)
    message = f"its process holds more after every row of {calls} calls: about {min(grown) // calls} bytes for each"
    return Failed(reason=Reason(code="RESOURCE_ABUSE", message=message), observed=said, threshold=THRESHOLD)


LEAKS = Gate(name="leaks", examine=examine, runs_early=True)
