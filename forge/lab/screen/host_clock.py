"""Times drafts on a processor: one process each, in turns, in the order that each round draws.

The processes of a group are forked from one, so that they share its layout of addresses. All of them answer the same
questions, as chains of calls, and each is stopped while another one works. The time that its
threads waited for a processor is taken off a window's. Other work on the machine then disturbs the order less.
"""

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from forge.domain.authoring import FailedTrial
from forge.errors import EnvironmentUnfit
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.observed import Case
from forge.lab.screen.prepare import Fit, failed_trial, without_verdict, wrong_answer
from forge.lab.screen.race import Paired
from forge.lab.timing.cpu_processes import candidate_program
from forge.lab.timing.release_plan import FEWEST_SETS, Planned, plan_chain
from forge.lab.timing.slope import questions
from forge.lab.timing.timed_guest import open_timed
from forge.sandbox.session import IDLE
from forge.sandbox.stage import Stage

GROUP = 8
"""Number of drafts whose processes are alive at once, besides the reference's. Each holds torch and an arena."""
MOST_ASKED = 16
"""Number of calls of one window, at most. A benchmark asks up to three times as many, with as many more operands to
write, for a time that counts."""
REFERENCE, EMPTY = -1, -2
"""Places of the reference and of the empty guest among the drafts of a group. The empty guest is another process of
the reference, which makes no calls. A process that did both would find its memory in other caches than the drafts
do."""


@dataclass
class HostClock:
    """Open processes of one group."""

    kernels: Mapping[int, LoadedKernel]
    planned: Planned
    cases: Sequence[Case]
    rng: random.Random
    _idle_ns: list[int] = field(default_factory=list)

    def measure(self, alive: Sequence[int]) -> Mapping[int, Paired | FailedTrial]:
        """Time the reference and each draft once, in a drawn order; raise EnvironmentUnfit if the reference fails."""
        order = [EMPTY, REFERENCE, *alive]
        self.rng.shuffle(order)
        first = self.rng.randrange(len(self.cases))
        taken = {place: self._window(place, first) for place in order}
        idle, reference = taken.pop(EMPTY), taken.pop(REFERENCE)
        if isinstance(idle, FailedTrial):
            raise EnvironmentUnfit(f"a release without calls failed: {idle.reason.message}; run the command again")
        self._idle_ns.append(idle)
        path_ns = statistics.median(self._idle_ns)
        if isinstance(reference, FailedTrial):
            raise EnvironmentUnfit(
                f"the reference draft failed while it was timed: {reference.reason.message}; run the command again"
            )
        calls = self.planned.asked
        return {
            place: one
            if isinstance(one, FailedTrial)
            else Paired((one - path_ns) / calls, (reference - path_ns) / calls)
            for place, one in taken.items()
        }

    def _window(self, place: int, first: int) -> int | FailedTrial:
        try:
            function = IDLE if place == EMPTY else 0
            answer = self.kernels[place].chain(self.cases, first=first, count=self.planned.asked, function=function)
        except EnvironmentUnfit as error:
            return without_verdict(error)
        return failed_trial("time", answer) if isinstance(answer, Failed) else self.kernels[place].undelayed_ns


@contextmanager
def open_group(
    fits: Mapping[int, Fit], reference: Fit, rng: random.Random
) -> Iterator[tuple[HostClock, Mapping[int, FailedTrial]]]:
    """Start a process for each draft and for the reference; yield the clock, and the drafts that didn't start.

    Raise EnvironmentUnfit if the reference doesn't start.
    """
    with ExitStack() as stack:
        sides = {REFERENCE: reference, EMPTY: reference, **fits}
        order = list(sides)
        rng.shuffle(order)  # the first process may get other memory than the last
        stages = {place: _stage(stack, sides[place]) for place in order}
        zygote = stages[REFERENCE].fresh_zygote(reference.job.threads)
        if zygote is not None:
            stack.callback(zygote.close)
        kernels: dict[int, LoadedKernel] = {}
        failed: dict[int, FailedTrial] = {}
        for place, stage in stages.items():
            opened = _opened(stack, sides[place], stage.forked_from(zygote))
            if isinstance(opened, LoadedKernel):
                kernels[place] = opened
            else:
                failed[place] = opened
        for place in {REFERENCE, EMPTY} & set(failed):
            raise EnvironmentUnfit(
                f"the reference draft can't be timed: {failed[place].reason.message}; run the command again"
            )
        planned = _shorter(plan_chain(kernels[REFERENCE], 0))
        cases = questions(kernels[REFERENCE], planned, rng)
        yield HostClock(kernels, planned, cases, rng), failed


def _shorter(planned: Planned) -> Planned:
    asked = min(planned.asked, MOST_ASKED)
    return Planned(shown=max(FEWEST_SETS, asked * planned.shown // planned.asked), asked=asked)


def _stage(stack: ExitStack, fit: Fit) -> Stage:
    stage = Stage(candidate_program(fit.job, fit.artifact), fit.job.isolation)
    stack.callback(stage.remove)
    return stage


def _opened(stack: ExitStack, fit: Fit, stage: Stage) -> LoadedKernel | FailedTrial:
    try:
        opened = open_timed(stack, fit.job, stage, (fit.job.candidate_function(),))
        if isinstance(opened, Failed):
            return failed_trial("load", opened)
        wrong = wrong_answer(opened)
    except EnvironmentUnfit as error:
        return without_verdict(error)
    return opened if wrong is None else failed_trial("check", wrong)
