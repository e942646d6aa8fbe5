"""Times drafts on a GPU: one launcher holds the launch plans of all of them and of the reference.

A launcher runs none of an author's host code. Each round times one window of every plan, in a drawn order, on the
same fresh contents. A plan that breaks the launcher is left out, and the launcher is started again without it.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from forge.domain.authoring import FailedTrial
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.trusted import trusted_program
from forge.lab.finding import Failed
from forge.lab.launch_plan.launcher import launchers_files
from forge.lab.observed import Case
from forge.lab.screen.prepare import Fit, failed_trial, without_verdict
from forge.lab.screen.race import Paired
from forge.lab.timing.screening_windows import device_cases
from forge.lab.timing.timed_guest import open_loaded
from forge.sandbox.plans import Captured
from forge.sandbox.session import Window
from forge.sandbox.stage import Stage

WARM_UP_WINDOWS = 2
"""Number of windows of each plan before the first round. Chosen; each costs one window for each plan."""
REFERENCE = -1
"""Place of the reference among the drafts."""


class DeviceClock:
    """One launcher with many plans; use as a context manager."""

    def __init__(self, fits: Mapping[int, Fit], reference: Fit, rng: random.Random) -> None:
        self._job, self._rng = reference.job, rng
        self._plans = {place: _plan(fit) for place, fit in {REFERENCE: reference, **fits}.items()}
        self._stack = ExitStack()
        self._kernel: LoadedKernel | None = None
        self._functions: dict[int, int] = {}
        self._cases: list[Case] = []
        self.failed: dict[int, FailedTrial] = {}
        """Drafts whose plans failed so far."""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def measure(self, alive: Sequence[int]) -> Mapping[int, Paired | FailedTrial]:
        """Time the reference and each draft once; a draft that fails now is in the result as a failed trial."""
        broken: dict[int, FailedTrial] = {}
        while True:
            taken = self._round([place for place in alive if place not in self.failed])
            if not isinstance(taken, tuple):
                reference_ns = taken.pop(REFERENCE)
                return broken | {place: Paired(own_ns, reference_ns) for place, own_ns in taken.items()}
            place, trial = taken
            broken[place] = trial
            self._leave_out(place, trial)
            self._start()

    def _round(self, alive: Sequence[int]) -> dict[int, float] | tuple[int, FailedTrial]:
        """Time each draft and the reference once, in a drawn order; return nanoseconds by the draft's place.

        If a draft fails, its place and its failed trial are returned instead.
        """
        order, offset = [REFERENCE, *alive], self._rng.randrange(1, 2**31)
        self._rng.shuffle(order)
        taken: dict[int, float] = {}
        for place in order:
            own_ns = self._window(place, offset)
            if isinstance(own_ns, FailedTrial):
                return place, own_ns
            taken[place] = own_ns
        return taken

    def _window(self, place: int, offset: int) -> float | FailedTrial:
        assert self._kernel is not None, "the launcher is started"
        try:
            timed = self._kernel.time(self._functions[place], Window(rotation_offset=offset), self._cases)
        except EnvironmentUnfit as error:
            return without_verdict(error)
        if isinstance(timed, Failed):
            return failed_trial("time", timed)
        if timed[0].device_ns <= 0:
            reason = Reason(code="CLOCK_DISAGREES", message="it took no time by the device's events")
            return FailedTrial(stage="time", reason=reason)
        return timed[0].device_ns / len(self._cases)

    def _start(self) -> None:
        """Start the launcher with every plan that hasn't failed; each is called, judged and warmed up."""
        while True:
            self._stack.close()
            broken = self._open(sorted(self._plans))
            if broken is None:
                return
            self._leave_out(*broken)

    def _open(self, places: Sequence[int]) -> tuple[int, FailedTrial] | None:
        """Open the launcher; return a plan that broke it, if one did."""
        kernel = self._loaded(places)
        if isinstance(kernel, FailedTrial):
            return self._culprit(places, kernel)
        self._kernel, self._functions = kernel, {place: function for function, place in enumerate(places)}
        question = kernel.case(kernel.shape)
        for place in places:
            wrong = self._called(kernel, place, question)
            if wrong is not None:
                return place, wrong
        self._cases = self._cases or device_cases(kernel)
        if kernel.fill(self._cases) is not None:
            raise EnvironmentUnfit(
                "the launcher couldn't lay out its operands: the device may be out of memory; end what else uses it"
            )
        for place in [*places] * WARM_UP_WINDOWS:
            warmed = self._window(place, 0)
            if isinstance(warmed, FailedTrial):
                return place, warmed
        return None

    def _loaded(self, places: Sequence[int]) -> LoadedKernel | FailedTrial:
        files, functions = launchers_files(self._job, [self._plans[place] for place in places])
        stage = Stage(trusted_program(self._job, files), self._job.isolation)
        self._stack.callback(stage.remove)
        try:
            opened = open_loaded(self._stack, self._job, stage, functions)
        except EnvironmentUnfit as error:
            return without_verdict(error)
        return failed_trial("plan", opened) if isinstance(opened, Failed) else opened

    def _called(self, kernel: LoadedKernel, place: int, question: Case) -> FailedTrial | None:
        try:
            called = kernel.call([question], function=self._functions[place])
        except EnvironmentUnfit as error:
            return without_verdict(error)
        wrong = called if isinstance(called, Failed) else kernel.first_wrong(called)
        return None if wrong is None else failed_trial("plan", wrong)

    def _culprit(self, places: Sequence[int], together: FailedTrial) -> tuple[int, FailedTrial]:
        """Find a plan that can't be loaded even alone; raise EnvironmentUnfit if each can."""
        for place in places:
            self._stack.close()
            alone = self._loaded([place])
            if isinstance(alone, FailedTrial):
                return place, alone
        raise EnvironmentUnfit(
            f"one launcher can't hold {len(places)} plans, of which each loads alone ({together.reason.message}): "
            "screen fewer drafts at once"
        )

    def _leave_out(self, place: int, trial: FailedTrial) -> None:
        """Take a plan out; raise EnvironmentUnfit for the reference's."""
        if place == REFERENCE:
            raise EnvironmentUnfit(
                f"the reference draft failed while it was timed: {trial.reason.message}; run the command again"
            )
        del self._plans[place]
        self.failed[place] = trial


def _plan(fit: Fit) -> Captured:
    assert fit.plan is not None, "a draft for a GPU is prepared with its plan"
    return fit.plan
