"""Times contenders in a few short windows, in which they take turns: enough to rank them, not to judge."""

from collections.abc import Callable, Sequence

from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.observed import Case
from forge.lab.parallel import parallel_map
from forge.lab.timing.rotated_sets import rotated_set_count
from forge.sandbox.arena import set_bytes
from forge.sandbox.session import Window

WINDOWS = 8
"""Number of windows of each contender, of which the shortest counts, since other work only lengthens one. Chosen;
each costs its time for every contender."""
CALLS = 8
"""Number of calls of a window on a processor, if the arena has room; on a GPU a window has one call on each set.
Chosen; each call has operands of its own."""
DRAWN_SETS = 16
"""Number of different sets of a window on a GPU. Chosen; drawing a set takes longer than a window."""


def times_ns(job: Job, kernels: Sequence[LoadedKernel], *, function: int = 0) -> list[float | Failed]:
    """Return each kernel's shortest time of a call in nanoseconds, or why it failed while it was timed.

    `function` is the place of the timed function in every guest.
    """
    if not kernels:
        return []
    window, failed = _on_device(kernels, function) if job.device == "cuda" else _on_host(kernels, function)
    taken: list[list[float]] = [[] for _ in kernels]
    for _ in range(WINDOWS):
        for place, kernel in enumerate(kernels):
            timed = failed.get(place) or window(kernel)
            if isinstance(timed, Failed):
                failed[place] = timed
            else:
                taken[place].append(timed)
    return [failed[place] if place in failed else min(times) for place, times in enumerate(taken)]


_TOOK_NO_TIME = Failed(
    reason=Reason(code="CLOCK_DISAGREES", message="it took no time by the device's events"),
    observed="0 ns",
    threshold="more than 0 ns",
)
_Timed = Callable[[LoadedKernel], float | Failed]


def _on_host(kernels: Sequence[LoadedKernel], function: int) -> tuple[_Timed, dict[int, Failed]]:
    """Return a function that times a window by the host's clock: a chain of calls, with its share of the path."""
    first = kernels[0]
    count = CALLS
    while count > 1 and not first.fits(first.shape, count):
        count -= 1
    cases = first.cases(first.shape, ["normal"] * count)

    def window(kernel: LoadedKernel) -> float | Failed:
        observed = kernel.chain(cases, first=0, count=count, function=function, reading="unread")
        return observed if isinstance(observed, Failed) else observed[0].elapsed_ns / count

    return window, {}


def _on_device(kernels: Sequence[LoadedKernel], function: int) -> tuple[_Timed, dict[int, Failed]]:
    """Return a function that times a window by graph replay, and the kernels that couldn't lay out their operands."""
    cases = device_cases(kernels[0])
    refused = parallel_map(lambda kernel: kernel.fill(cases), kernels, serial_up_to=1)
    failed = {
        place: Failed(reason=one.reason, observed=one.reason.message, threshold="room for its operands", log=one.log)
        for place, one in enumerate(refused)
        if one is not None
    }

    def window(kernel: LoadedKernel) -> float | Failed:
        timed = kernel.time(function, Window(rotation_offset=kernel.rng.randrange(1, 2**31)), cases)
        if isinstance(timed, Failed):
            return timed
        return timed[0].device_ns / len(cases) if timed[0].device_ns > 0 else _TOOK_NO_TIME

    return window, failed


def device_cases(kernel: LoadedKernel) -> list[Case]:
    """Return the operands of every set: few different ones in turn, since contents are rotated before each window."""
    count = rotated_set_count(set_bytes(*kernel.forms(kernel.shape)))
    drawn = kernel.cases(kernel.shape, ["normal"] * min(count, DRAWN_SETS))
    return [drawn[place % len(drawn)] for place in range(count)]
