"""One shape's operand sets, and fresh processes to time on them: what measurement.py measures with.

The windows are those of forge/lab/timing/graph_replay.py, asked of guests by the same session. Only which processes
are paired, and how often, is decided here.
"""

import json
import random
import secrets
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from forge.domain.candidate import Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.device import Device
from forge.domain.policy import Policy
from forge.errors import EnvironmentUnfit
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.trusted import CACHE_FOLDER, trusted_program
from forge.lab.finding import Failed
from forge.lab.inputs.draw import draw
from forge.lab.job import Job
from forge.lab.launch_plan.examine import examine_plan
from forge.lab.launch_plan.launcher import kept_plan, launched
from forge.lab.observed import Case
from forge.lab.timing.graph_replay import WARM_UP_WINDOWS, windows_of
from forge.lab.timing.rotated_sets import rotated_set_count
from forge.languages import find_language
from forge.operations import find_operation
from forge.platforms.cuda import gpu_facts
from forge.sandbox.isolation_here import isolation
from forge.sandbox.launch import Bind
from forge.sandbox.plans import Captured
from forge.sandbox.session import GuestFunction, Window
from forge.sandbox.stage import Stage

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "h200" / "fused_add_rmsnorm"
GUEST_LIMIT_S = 1800.0
STARTED_TOGETHER = 8

Times = list[list[int]]
"""Nanoseconds of a round's windows, by pair and round."""
Start = Callable[[], AbstractContextManager[LoadedKernel | Failed]]
"""Starts a process that has loaded what is to be timed."""


@dataclass
class Bench:
    """What is measured at one shape: its job, the contents of its operand sets, and processes that have them."""

    job: Job
    cases: list[Case]
    stack: ExitStack
    rng: random.Random
    device_ns: int = 0
    """All windows so far."""
    resident: bool = False
    """True in the resident regime: the operands of a window are written just before it."""
    windows: int = 1
    """Number of windows of a side in one round."""

    def window_ns(self, side: LoadedKernel, *, rotation_offset: int = 0) -> int:
        """One window, as forge/lab/timing/graph_replay.py asks for it."""
        timed = side.time(0, Window(rotation_offset=rotation_offset, resident=self.resident), self.cases)
        if isinstance(timed, Failed):
            raise EnvironmentUnfit(f"a window failed: {timed.reason.message}; {timed.log[-800:]}")
        self.device_ns += timed[0].device_ns
        return timed[0].device_ns

    def open(self, start: Start, count: int) -> list[LoadedKernel]:
        """Fresh processes, laid out and warm."""

        def one(_: int) -> LoadedKernel:
            kernel = self.stack.enter_context(start())
            if isinstance(kernel, Failed):
                raise EnvironmentUnfit(f"a guest didn't load: {kernel.reason.message}; {kernel.log[-800:]}")
            return kernel

        with ThreadPoolExecutor(STARTED_TOGETHER) as pool:
            sides = list(pool.map(one, range(count)))
        self.lay_out(sides)
        return sides

    def lay_out(self, sides: Sequence[LoadedKernel]) -> None:
        """Give every process the operand sets, and warm it up."""
        with ThreadPoolExecutor(STARTED_TOGETHER) as pool:
            refused = list(pool.map(lambda side: side.fill(self.cases), sides))
        if any(one is not None for one in refused):
            raise EnvironmentUnfit("a guest couldn't lay out its operands")
        for side in [*sides] * WARM_UP_WINDOWS:
            self.window_ns(side)

    def make_resident(self, sides: Sequence[LoadedKernel], sets: int) -> None:
        """Go on in the resident regime, with at most `sets` operand sets: as many as half of the cache holds."""
        self.cases, self.resident = self.cases[:sets], True
        self.windows = windows_of(len(self.cases))
        self.lay_out(sides)

    def paired(self, left: Sequence[LoadedKernel], right: Sequence[LoadedKernel], rounds: int) -> tuple[Times, Times]:
        """Rounds of each pair in turn, with contents and order drawn anew for each."""
        times: tuple[Times, Times] = ([], [])
        for pair in zip(left, right, strict=True):
            taken = ([0] * rounds, [0] * rounds)
            for number in range(rounds):
                for _ in range(self.windows):
                    rotation_offset = self.rng.randrange(1, 2**31)
                    for which in self.rng.sample((0, 1), 2):
                        taken[which][number] += self.window_ns(pair[which], rotation_offset=rotation_offset)
            times[0].append(taken[0])
            times[1].append(taken[1])
        return times

    def per_call_us(self, times: Times) -> float:
        """The median round, over its calls."""
        calls = len(self.cases) * self.windows
        return statistics.median(one for rounds in times for one in rounds) / calls / 1000


def job_for(shape: str, device: Device) -> Job:
    """The example at a shape, as the lab is asked to judge it."""
    files = {name: (EXAMPLE / name).read_bytes() for name in REQUIRED_FILES}
    metadata = Metadata.model_validate(json.loads(files["metadata.json"]))
    rows, width = map(int, shape.split("x"))
    facts = gpu_facts(device.uuid)
    return Job(
        operation=find_operation(metadata.op),
        language=find_language(metadata.language),
        shape={"batch": rows, "hidden_size": width},
        held_out=(),
        dtype="fp16",
        policy=Policy(memory_limit_bytes=2**36),
        isolation=isolation(),
        files=files,
        metadata=metadata,
        entry_point=metadata.entry_point or metadata.op,
        device="cuda",
        gpu=device,
        arch=facts.arch if facts else "sm_90",
    )


def plan_of(job: Job) -> Captured:
    """The example's launch plan, captured and held against the oracle as in every verification."""
    finding, files = examine_plan(job, staged_files(job, ()))
    captured = kept_plan(files)
    if captured is None:
        raise EnvironmentUnfit(f"the example has no launch plan here: {finding.observed}")
    return captured


@contextmanager
def own_calls(job: Job) -> Iterator[LoadedKernel | Failed]:
    """A guest like a launcher, but with the kernel's own host code: its calls are captured and replayed."""
    cache = Path(tempfile.mkdtemp(prefix="forge-measurement-"))
    cache.chmod(0o777)
    stage = Stage(trusted_program(job, job.files, binds=(Bind(cache, CACHE_FOLDER, writable=True),)), job.isolation)
    try:
        with loaded(
            job, stage, job.limits(GUEST_LIMIT_S), GuestFunction("kernel.py", job.entry_point), label="bench"
        ) as kernel:
            yield kernel
    finally:
        stage.remove()
        shutil.rmtree(cache, ignore_errors=True)


@contextmanager
def bench(shape: str, device: Device) -> Iterator[tuple[Bench, Start]]:
    """A shape's operand sets, and how to start a launcher of the example's plan."""
    job = job_for(shape, device)
    captured = plan_of(job)
    sets = rotated_set_count(job.operation.bytes_moved(job.shape, job.dtype))
    cases = [drawn(job) for _ in range(sets)]
    with ExitStack() as stack:
        yield Bench(job, cases, stack, random.Random()), lambda: launched(job, captured, job.limits(GUEST_LIMIT_S))


def drawn(job: Job) -> Case:
    """One operand set."""
    seed = secrets.randbits(48)
    inputs = draw(job.operation, job.shape, job.dtype, "normal", seed=seed)
    return Case(job.shape, "normal", seed, inputs, tuple(job.operation.scalars.values()))
