"""Is an autotuned kernel correct with every configuration that its tuner could choose, and in the call that tunes?

The user's tuner chooses by its own clock, so any of them may be the one. The call that tunes runs all of them on the
caller's tensors, with the tuner's hooks. A configuration that this machine can't build or launch is left out, as
Triton's own tuner does.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable

from forge.domain.evidence import WorkloadErrors
from forge.domain.verdict import Reason, ReasonCode
from forge.lab.calls.configurations import Configurations
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Placement
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates.gate import Gate
from forge.lab.observed import Case

MOST = 64
"""Number of configurations of one kernel after its pruning, at most. Each is compiled and judged, which takes one to
five seconds on a GPU."""
COMBINATIONS = 8
"""Number of questions in which several kernels get configurations at random. Two kernels with two configurations each
get equal numbers in all eight with a chance of 1 in 256. Later gates draw more."""
THRESHOLD = "right with each of them, and in the call that tunes"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask the public shape with each configuration, then once while the tuner runs all of them."""
    found = kernel.configurations()
    if isinstance(found, Failed):
        return found
    if found.most > MOST:
        return _refused(f"an autotuned kernel has {found.most} configurations at the task's shape: at most {MOST}")
    if not found.most:
        return NotAsked(observed="no autotuned kernel", threshold=THRESHOLD)
    kernel.tuner.allow_for(found.most)
    errors: list[WorkloadErrors] = []
    for number in range(found.most):
        kernel.tuner.choose(number)
        checked = kernel.check([kernel.case(kernel.shape)])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    for _ in range(COMBINATIONS if len(found.configurations) > 1 else 0):
        checked = kernel.check_alone(kernel.case(kernel.shape))
        if isinstance(checked, Failed):
            return checked
        errors += checked
    kernel.tuner.choose(kernel.rng.randrange(found.most), way="rehearse")
    checked = kernel.check([kernel.case(kernel.shape)])
    if isinstance(checked, Failed):
        return in_the_call_that_tunes(checked)
    kernel.tuner.choose(kernel.rng.randrange(found.most))
    return Passed(
        observed=f"{found.most} configurations right, and the call that tunes",
        threshold=THRESHOLD,
        errors=(*errors, *checked),
    )


def ask_each(
    kernel: LoadedKernel, draws: Iterable[Callable[[], Case]], placement: Placement = PLAIN
) -> tuple[WorkloadErrors, ...] | Failed:
    """Ask new cases of each draw with each configuration that the calls so far could choose from.

    A configuration may be right elsewhere: its block may hold the public row, and no longer one. Each gets values of
    its own, since memory that isn't written may hold the answer to the last call.
    """
    found = kernel.configurations()
    if isinstance(found, Failed):
        return found
    if found.most > MOST:
        return _refused(f"an autotuned kernel has {found.most} configurations at some shapes: at most {MOST}")
    if found.most < 2:
        return ()
    kernel.tuner.allow_for(found.most)
    errors: list[WorkloadErrors] = []
    for draw, number in itertools.product(draws, range(found.most)):
        kernel.tuner.choose(number)
        checked = kernel.check([draw()], placement=placement)
        if isinstance(checked, Failed):
            return checked
        errors += checked
    return tuple(errors)


def in_the_call_that_tunes(failed: Failed) -> Failed:
    """Return the refusal with the reason why this call is another than those after it."""
    message = (
        "in the call that tunes, where each configuration runs on the caller's tensors (restore_value and "
        f"reset_to_zero are for that): {failed.reason.message}"
    )
    return dataclasses.replace(failed, reason=Reason(code=failed.reason.code, message=message))


def with_configuration(kernel: LoadedKernel, failed: Failed) -> Failed:
    """Return a refusal that names the configuration in use, if the candidate is autotuned and still answers.

    The name is the guest's words, which may tell a held-out shape once the guest has seen one.
    """
    used = kernel.configurations() if kernel.tuner.tunes and not kernel.saw_held_out else None
    if not isinstance(used, Configurations) or used.most < 2:
        return failed
    message = f"{failed.reason.message}; with the configuration {used}"
    return dataclasses.replace(failed, reason=Reason(code=failed.reason.code, message=message[:1000]))


def _refused(message: str, code: ReasonCode = "BAD_SUBMISSION") -> Failed:
    return Failed(reason=Reason(code=code, message=message), observed=message, threshold=THRESHOLD)


CONFIGURATIONS = Gate(name="configurations", examine=examine, runs_early=True, runs_alone=True)
