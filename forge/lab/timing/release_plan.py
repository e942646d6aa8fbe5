"""Plans a release by the host's clock: the number of sets in memory, of sets asked, and of cycles over them.

Only trusted sides decide on a CPU, so that a candidate can't influence how it is timed.
"""

import math
from dataclasses import dataclass

from forge.domain.policy import CONTROL_KIND
from forge.errors import EnvironmentUnfit
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.timing.contender_failure import raise_for_contender
from forge.lab.timing.cpu_processes import CANDIDATE, GuestSet
from forge.lab.timing.residency import Residence, processor_cache_bytes
from forge.lab.timing.rotated_sets import ROTATION_BYTES
from forge.sandbox.session import MOST_IN_CHAIN

WORK_NS = 5_000_000
"""Nanoseconds of the baseline's work in a release. Chosen: a thousand times the path's variation of some
microseconds."""
FEWEST_ASKED, MOST_ASKED = 8, MOST_IN_CHAIN
"""Number of calls of one release, at least and at most, if the arena has room for them."""
SHOWN_BYTES = 128 * 2**20
"""Size in bytes of all sets in memory, at most. Chosen; the host writes all of them in each round, for each side."""
LARGE_SET_BYTES = 2**18
"""Size of one call's operands in bytes from which on most of a call is work. At 10 GB/s they take 26 us. Such a call
gains little from being made together with others."""
SHOWN_FOR_EACH, SHOWN_FOR_EACH_LARGE = 8, 2
"""Number of sets in memory for each one that is asked, for small and for large sets. A kernel that answers all sets
at once has this many times the work."""
DEVICE_WORK_NS = 50_000_000
"""Nanoseconds of work in a release on a device. Chosen: fifty times the variation of its copies, a millisecond."""
FEW_CYCLES = 2
"""Number of cycles in the shorter of the two releases that estimate the time of a call on a device. The longer one
has five times as many. Only the difference counts, so the copies cancel out."""
MOST_CYCLES = 20_000
"""Number of cycles in a release on a device, at most. With two sets only calls under 1.25 us reach it."""
MOST_SETS_ON_DEVICE = 48
"""Number of sets on a device, at most. The same number as `MOST_ASKED`: each set's last answer is judged, so a larger
number costs more judging."""
FEWEST_SETS = 3
"""Number of sets in memory, at least. A chain has two calls at least; with one more set the guest can't know which
two come."""


@dataclass(frozen=True)
class Planned:
    """The plan of a release: the number of sets in memory, of sets asked, and of cycles over them."""

    shown: int
    asked: int
    cycles: int = 0
    """Number of cycles over all sets at once; 0 if the calls are a chain."""

    @property
    def calls(self) -> int:
        """Number of calls in a release."""
        return self.asked * max(1, self.cycles)


def residence_of(job: Job, guests: GuestSet, planned: Planned) -> Residence:
    """Return whether the operands of a chain can be in the processor's cache.

    A release needs as many calls as otherwise, since a shorter one takes less than the path varies.
    """
    kernel = guests.kernel(CONTROL_KIND)
    inputs, outputs = kernel.forms(kernel.shape)
    operand_bytes = sum(form.at(0).size_bytes for form in (*inputs, *outputs))
    if job.device != "cpu":
        why = "the host's clock on a GPU copies the operands first, and times many cycles over them"
        return Residence(None, operand_bytes, excluded=why)
    fewest = FEWEST_ASKED * max(1, planned.shown // planned.asked)
    return Residence(processor_cache_bytes(), operand_bytes, fewest_sets=fewest)


def resident_plan(job: Job, residence: Residence, planned: Planned) -> Planned | None:
    """Return the plan of a release whose sets fit into the cache; None if the regime isn't asked for or not possible.

    The host writes the sets just before each release. As many sets are asked for each one in memory as otherwise.
    """
    if "resident" not in job.policy.regimes or residence.why_not is not None:
        return None
    shown = min(planned.shown, residence.sets)
    return Planned(shown=shown, asked=max(2, planned.asked * shown // planned.shown))


def plan_release(guests: GuestSet, job: Job) -> Planned | Failed:
    """Plan a chain of calls on a CPU, and cycles over all sets on a device."""
    if job.device == "cpu":  # only the baseline's time decides, so that a candidate can't influence how it is timed
        return plan_chain(guests.kernel(CONTROL_KIND), guests.function(CONTROL_KIND))
    return plan_cycles(guests)


def plan_chain(kernel: LoadedKernel, function: int) -> Planned:
    """Choose how many sets lie in memory and how many are asked: enough work for the clock, within the arena.

    The work is that of this function; raise EnvironmentUnfit if it fails.
    """
    inputs, outputs = kernel.forms(kernel.shape)
    set_bytes = sum(form.span_bytes for form in (*inputs, *outputs))
    for_each = SHOWN_FOR_EACH if set_bytes < LARGE_SET_BYTES else SHOWN_FOR_EACH_LARGE
    most = for_each * MOST_ASKED
    while most > FEWEST_SETS and not (kernel.fits(kernel.shape, most) and most * set_bytes <= SHOWN_BYTES):
        most -= 1
    rough = _rough_chain_ns(kernel, function, max(FEWEST_SETS, min(most, FEWEST_ASKED)))
    asked = max(FEWEST_ASKED, min(MOST_ASKED, int(WORK_NS / rough)))
    shown = max(FEWEST_SETS, min(most, asked * for_each))
    return Planned(shown=shown, asked=max(2, min(asked, shown // for_each)))


def _rough_chain_ns(kernel: LoadedKernel, function: int, count: int) -> float:
    """Estimate the time of a call of a trusted side, with its share of the path."""
    cases = [kernel.case(kernel.shape) for _ in range(count)]
    best = math.inf
    for _ in range(3):
        observed = kernel.chain(cases, first=0, count=count, function=function, reading="unread")
        if isinstance(observed, Failed):
            raise EnvironmentUnfit(
                f"the baseline failed while it was timed: {observed.reason.message}; run the command again"
            )
        best = min(best, observed[0].elapsed_ns / count)
    return best


def plan_cycles(guests: GuestSet) -> Planned | Failed:
    """Choose how many cycles over the same sets a release has, so that its work exceeds its copies."""
    kernel = guests.kernel(CANDIDATE)
    inputs, outputs = kernel.forms(kernel.shape)
    set_bytes = sum(form.at(0).size_bytes for form in (*inputs, *outputs))
    sets = max(2, min(MOST_SETS_ON_DEVICE, -(-ROTATION_BYTES // max(1, set_bytes))))
    while sets > FEWEST_SETS and not kernel.fits(kernel.shape, sets):
        sets -= 1
    fastest_ns = _fastest_ns(guests, sets)
    if isinstance(fastest_ns, Failed):
        return fastest_ns
    cycles = min(MOST_CYCLES, int(DEVICE_WORK_NS / (fastest_ns * sets)) + 2)
    return Planned(shown=sets, asked=sets, cycles=cycles)


def _fastest_ns(guests: GuestSet, sets: int) -> float | Failed:
    """Estimate the time per call of the fastest side, at least 1."""
    times = []
    for side, guest in guests.pairs():
        rough_ns = _rough_ns(guest, guests.function(side), sets)
        if isinstance(rough_ns, Failed):
            if side != CANDIDATE:
                raise_for_contender(side, rough_ns)
                raise EnvironmentUnfit(
                    f"the side {side!r} failed while it was timed: {rough_ns.reason.message}; expected one that runs "
                    "here, or that policy.toml leaves out"
                )
            return rough_ns
        times.append(rough_ns)
    return max(1.0, min(times))


def _rough_ns(kernel: LoadedKernel, function: int, sets: int) -> float | Failed:
    """Estimate the time per call from the difference between two numbers of cycles."""
    cases = [kernel.case(kernel.shape) for _ in range(sets)]
    best = dict.fromkeys((FEW_CYCLES, 5 * FEW_CYCLES), 1e18)
    for _ in range(3):
        for cycles in best:
            observed = kernel.call(cases, function=function, cycles=cycles)
            if isinstance(observed, Failed):
                return observed
            best[cycles] = min(best[cycles], float(observed[0].elapsed_ns))
    few, more = best
    return (best[more] - best[few]) / (sets * (more - few))
