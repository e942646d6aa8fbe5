"""Starts the guests of one measurement on a GPU: plan launcher, baselines and control, one process each per pair.

All of them are Forge's own code and run behind the wall. The processes of all pairs start together, since a start
takes seconds. The pairs are timed one after the other, and only one process computes at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from forge.domain.policy import CONTROL_KIND
from forge.lab.baselines import (
    baseline_function,
    baseline_program,
    compiled_copy,
    compiled_folder,
)
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.trusted import trusted_program
from forge.lab.contenders.guests import contender_folder, contender_program
from forge.lab.contenders.present import PresentContender
from forge.lab.finding import Failed
from forge.lab.job import Job, Progress
from forge.lab.launch_plan.launcher import LAUNCH, launcher_files
from forge.lab.parallel import parallel_map
from forge.lab.timing.contender_failure import raise_for_contender
from forge.lab.timing.cpu_processes import CANDIDATE, CONTROL
from forge.lab.timing.incumbent import PROMOTED
from forge.lab.timing.timed_guest import first_case, open_timed, require_opened, side_of_baselines
from forge.lab.timing.tunings import compile_baselines
from forge.sandbox.plans import Captured
from forge.sandbox.session import GuestFunction
from forge.sandbox.stage import Program, Stage


@dataclass(frozen=True)
class DeviceSide:
    """One function of one guest."""

    kernel: LoadedKernel
    function: int
    candidates: bool = False
    """Whether a failure of this side is the candidate's."""


@dataclass(frozen=True)
class DeviceGuests:
    """The sides of one process pair, in order."""

    sides: Mapping[str, DeviceSide]
    stacks: tuple[ExitStack, ...]
    """Exit stacks of the processes, one for each."""

    @property
    def kernels(self) -> tuple[LoadedKernel, ...]:
        """Each guest once."""
        return tuple({id(side.kernel): side.kernel for side in self.sides.values()}.values())

    @property
    def set_bytes(self) -> int:
        """Size of the inputs and outputs of one call in bytes."""
        kernel = self.sides[CANDIDATE].kernel
        inputs, outputs = kernel.forms(kernel.shape)
        return sum(form.at(0).size_bytes for form in (*inputs, *outputs))


@contextmanager
def open_device_guests(
    job: Job,
    captured: Captured,
    promoted: Captured | None,
    contenders: Sequence[PresentContender],
    *,
    progress: Progress,
) -> Iterator[Iterator[DeviceGuests]]:
    """Start all processes and yield an iterator over the process pairs; stop everything at the end."""
    with ExitStack() as stack:
        factory = _Factory(job, captured, promoted, contenders, stack)
        progress("baselines")
        compile_baselines(job, progress=progress)
        progress("launchers")
        count = job.policy.process_pairs
        with ThreadPoolExecutor(4 * count) as pool:
            pairs = list(pool.map(lambda _: factory.pair(), range(count)))
        yield _pair_by_pair(pairs)


def _pair_by_pair(pairs: list[DeviceGuests]) -> Iterator[DeviceGuests]:
    """Yield each pair for its measurement, then end its processes and free their memory before the next."""
    for guests in pairs:
        yield guests
        parallel_map(ExitStack.close, guests.stacks, serial_up_to=1)


class _Factory:
    """The stages of one measurement, and a way to start fresh guests on them."""

    def __init__(
        self,
        job: Job,
        captured: Captured,
        promoted: Captured | None,
        contenders: Sequence[PresentContender],
        stack: ExitStack,
    ) -> None:
        self._job = job
        self._contenders = contenders
        self._stack = stack
        self._candidate = self._stage(_launcher(job, captured))
        self._promoted = None if promoted is None else self._stage(_launcher(job, promoted))
        self._first = first_case(job)

    def pair(self) -> DeviceGuests:
        """Start new processes for every side at the same time; raise EnvironmentUnfit if a trusted guest fails."""
        job = self._job
        wanted: list[tuple[str, Stage, tuple[GuestFunction, ...]]] = [
            (CANDIDATE, self._candidate, (LAUNCH,)),
            (side_of_baselines(job), self._compiled(), tuple(baseline_function(job, kind) for kind in job.baselines)),
            ("the control", self._compiled(), (baseline_function(job, CONTROL_KIND),)),
        ]
        if self._promoted is not None:
            wanted.append((PROMOTED, self._promoted, (LAUNCH,)))
        wanted += [(one.name, self._contender(one), (one.function,)) for one in self._contenders]
        stacks = tuple(self._stack.enter_context(ExitStack()) for _ in wanted)
        with ThreadPoolExecutor(len(wanted)) as pool:
            opened = [
                pool.submit(open_timed, own, job, stage, functions, first=self._first)
                for own, (_, stage, functions) in zip(stacks, wanted, strict=True)
            ]
        kernels = [_opened(one.result(), who) for one, (who, _, _) in zip(opened, wanted, strict=True)]
        sides = {CANDIDATE: DeviceSide(kernels[0], 0, candidates=True)}
        sides |= {kind: DeviceSide(kernels[1], place) for place, kind in enumerate(job.baselines)}
        sides[CONTROL] = DeviceSide(kernels[2], 0)
        sides |= {who: DeviceSide(kernel, 0) for kernel, (who, _, _) in zip(kernels[3:], wanted[3:], strict=True)}
        return DeviceGuests(sides, stacks)

    def _compiled(self) -> Stage:
        """Return a stage with its own copy of torch.compile's results."""
        kept = self._stack.enter_context(compiled_copy(compiled_folder(self._job)))
        return self._stage(baseline_program(self._job, kept))

    def _contender(self, contender: PresentContender) -> Stage:
        """Return a stage of a contender, with its own copy of what its compilers left in the screening."""
        kept = self._stack.enter_context(compiled_copy(contender_folder(self._job, contender)))
        return self._stage(contender_program(self._job, contender, kept))

    def _stage(self, program: Program) -> Stage:
        stage = Stage(program, self._job.isolation)
        self._stack.callback(stage.remove)
        return stage


def _opened(opened: LoadedKernel | Failed, side: str) -> LoadedKernel:
    if isinstance(opened, Failed):
        raise_for_contender(side, opened)
    return require_opened(opened, side)


def _launcher(job: Job, captured: Captured) -> Program:
    return trusted_program(job, launcher_files(job, captured))
