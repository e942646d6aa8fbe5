"""Does it return the memory that it takes, or does its process hold more after every few thousand calls?

A workspace that is never freed passes every other gate, and kills a server that calls the kernel for hours. The
kernel and the GPU driver report how much memory the guest's processes and files hold while they are stopped. This
gate has a guest of its own: memory that large calls have freed can be taken again without a trace.
"""

from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.shape_budget import affordable
from forge.lab.observed import Case

WINDOWS, MOST_WINDOWS = 3, 12
"""Number of series of calls that are looked at together, and the most that are made while those still grow. Memory
that is collected now and then shrinks again, and a pool is full, before twelve have grown. One series alone may not
grow although calls leak: memory that was freed earlier is taken again."""
MOST_SHARE = 1 / 8
"""Share of a guest's memory limit that a pool may take. Chosen; no further series is made if growth exceeds it, well
before the limit ends the guest."""
FEWEST_CALLS, MOST_CALLS, WINDOW_S = 2, 8192, 0.1
"""Number of calls in a series, at least and at most, and the seconds that a series may take. The third decides the
number for a slow candidate. Waiting for a processor doesn't count: a busy machine would allow too few calls."""
SLOW_S = 1.5
"""Time of the fewest calls in seconds. Chosen; a candidate that takes this long isn't given further series to settle,
since each takes as long."""
SETTLING_SERIES = 3
"""Number of series before the counted ones, at most. Each estimates better than the one before how many calls fit."""
GROWN_BYTES_A_CALL = 512
"""Growth in bytes for each call of a series that an allocator or a garbage collector may cause. It follows the calls,
since a slow candidate makes few of them."""
LEAST_GROWN_BYTES = 2**16
"""Growth in bytes of a series below which nothing is said, however few its calls: 16 pages."""
THRESHOLD = f"less than {GROWN_BYTES_A_CALL} bytes more a call in {WINDOWS} batches of calls"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask at the public shape, at odd sizes, and with one row: tails and single rows often have code of their own."""
    if not kernel.runner.makes_many_calls:
        return NotAsked(observed="an interpreter makes the calls, not a device", threshold=THRESHOLD)
    if kernel.held_bytes is None:
        return NotAsked(observed="this machine doesn't show a guest's memory", threshold=THRESHOLD)
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    odd = {**kernel.shape, rows: 2 * kernel.shape[rows] + 1, reduced: kernel.shape[reduced] // 2 * 2 + 1}
    said = []
    one_row = [{**odd, rows: 1}] if kernel.shape[rows] > 1 else []
    for shape in kernel.shapes(kernel.shape, affordable(kernel.operation, odd, kernel.shape), *one_row):
        finding = _growth_at(kernel, kernel.case(shape))
        if not isinstance(finding, Passed):
            return finding
        said.append(finding.observed)
    return Passed(observed="; ".join(said), threshold=THRESHOLD)


def _growth_at(kernel: LoadedKernel, case: Case) -> Finding:
    """Make calls until memory has settled, then make series of calls and read the guest's memory after each."""
    calls = FEWEST_CALLS
    for _ in range(SETTLING_SERIES):
        took_ns = _series(kernel, case, calls)
        if isinstance(took_ns, Failed):
            return took_ns
        if took_ns >= SLOW_S * 1e9:
            break
        calls = max(FEWEST_CALLS, min(MOST_CALLS, int(calls * WINDOW_S * 1e9 / took_ns)))
    held, grown = _held_bytes(kernel), list[int]()
    while len(grown) < WINDOWS or _may_be_a_pool(grown, calls, kernel.policy.memory_limit_bytes):
        took_ns = _series(kernel, case, calls)
        if isinstance(took_ns, Failed):
            return took_ns
        before, held = held, _held_bytes(kernel)
        grown.append(held - before)
    return _compared(calls, grown)


def _held_bytes(kernel: LoadedKernel) -> int:
    held = kernel.held_bytes
    assert held is not None, "a machine that showed it once shows it again"
    return held


def _may_be_a_pool(grown: list[int], calls: int, limit_bytes: int) -> bool:
    return len(grown) < MOST_WINDOWS and _grew(grown, calls) and sum(grown) < MOST_SHARE * limit_bytes


def _grew(grown: list[int], calls: int) -> bool:
    return sum(grown[-WINDOWS:]) >= WINDOWS * max(LEAST_GROWN_BYTES, GROWN_BYTES_A_CALL * calls)


def _series(kernel: LoadedKernel, case: Case, calls: int) -> int | Failed:
    """Return the nanoseconds that the calls took on a machine that isn't busy, or the refusal.

    The answers aren't judged here.
    """
    observed = kernel.call([case], cycles=calls)
    return observed if isinstance(observed, Failed) else kernel.undelayed_ns


def _compared(calls: int, grown: list[int]) -> Finding:
    said = f"{', '.join(f'{more / 2**20:+.1f}' for more in grown)} MiB after batches of {calls} calls"
    if not _grew(grown, calls):
        return Passed(observed=said, threshold=THRESHOLD)
    each = sum(grown) // (len(grown) * calls)
    message = f"its process holds more and more after batches of {calls} calls: about {each} bytes for each"
    return Failed(reason=Reason(code="RESOURCE_ABUSE", message=message), observed=said, threshold=THRESHOLD)


LEAKS = Gate(name="leaks", examine=examine, own_guest=True)
