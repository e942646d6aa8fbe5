"""Notices a candidate that left out what the harness does around a call: no kernel takes less than the harness alone.

The harness shares the candidate's process, so a candidate can replace it by less work. It can make all calls of a
chain in compiled code, and add the outputs up while it writes them. For short kernels that would be most of the time.
A guest of ours measures what the harness takes around a function that has nothing to do.
"""

from collections.abc import Sequence

from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.observed import Case
from forge.sandbox.session import IDLE

RELEASES = 5
"""Number of releases of the harness alone, and of none of its calls, in a process pair. Chosen; the shortest of them
is the least disturbed."""
LEAST_SHARE = 0.7
"""Share of the harness's own time that a candidate's calls take at least. Chosen; an honest kernel takes more than
the whole of it. Both are the shortest of several releases, which other work on the machine lengthens least."""


def harness_alone_ns(kernel: LoadedKernel, cases: Sequence[Case]) -> int:
    """Return the nanoseconds of a release that calls a function of ours once on each case, without the path.

    The function returns the same tensors every time. Time in which the guest or the host waited for a processor is
    left out. Raise EnvironmentUnfit if it fails.
    """
    taken: dict[int, list[int]] = {0: [], IDLE: []}
    for _ in range(RELEASES):
        for function, times in taken.items():
            observed = kernel.chain(cases, first=0, count=len(cases), function=function, reading="unread")
            if isinstance(observed, Failed):
                raise EnvironmentUnfit(
                    f"the harness alone failed while it was timed: {observed.reason.message}; run the command again"
                )
            times.append(kernel.undelayed_ns)
    return min(taken[0]) - min(taken[IDLE])


def left_out(work_ns: Sequence[float], harness_ns: float, *, calls: int) -> Failed | None:
    """Return the refusal of a candidate whose shortest release took less than the harness alone, without the path.

    If it seems to have taken no time at all, the noise is larger than the work, which is said elsewhere.
    """
    own_ns = min(work_ns)
    if own_ns <= 0 or own_ns >= LEAST_SHARE * harness_ns:
        return None
    message = (
        f"a call took {own_ns / calls / 1000:.1f} us, and what the harness does around each call takes "
        f"{harness_ns / calls / 1000:.1f} us alone"
    )
    reason = Reason(code="CLOCK_DISAGREES", message=message)
    return Failed(reason=reason, observed=message, threshold=f"at least {LEAST_SHARE:.0%} of the harness's own time")
