"""Tunes a compiled function several times, and keeps the choices of the fastest tuning.

Inductor times the configurations of each generated kernel for a moment, and keeps the one that seemed fastest. A
kernel of a few microseconds is shorter than what it resolves, so the choice is partly chance. On an H100 six tunings
of one function took 6.9 to 15.2 us a call, and of another 21.0 to 23.7 us. A user who wants speed tunes again. So a
compiled baseline is the fastest of some tunings, by the same windows for all.
"""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from forge.lab.baselines import (
    COMPILED,
    baseline_function,
    baseline_program,
    compiled_copy,
    compiled_folder,
    compiled_for,
    copy_plain,
)
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.job import Job, Progress
from forge.lab.parallel import parallel_map
from forge.lab.timing.screening_windows import times_ns
from forge.lab.timing.timed_guest import open_loaded, open_timed, require_opened, side_of_baselines
from forge.sandbox.session import GuestFunction
from forge.sandbox.stage import Program, Stage

TUNINGS = 4
"""Number of tunings. Chosen: where every second tuning is slow, all four are in 6 % of benchmarks. Each costs the
seconds of a start and a tuning."""
CHOICE = "*.best_config"
"""Pattern of the files in which Inductor keeps the configuration that it chose for a kernel."""


@dataclass(frozen=True, kw_only=True)
class CompiledSide:
    """A compiled function, and what guests of it run."""

    program: Callable[[Path], Program]
    """Function from the folder for what compilers leave to the program of a guest."""
    functions: tuple[GuestFunction, ...]
    place: int
    """Place of the compiled one among the functions."""
    kept: Path
    """Folder with what its compiler left."""


@dataclass(frozen=True)
class FastestTuning:
    """The fastest of some tunings of a compiled function."""

    call_ns: float
    """Time of a call in nanoseconds, by the shortest of a few windows."""
    kept: Path
    chosen: Path
    """Folder with its choices: `kept`, or a copy of it."""

    def install(self) -> None:
        """Leave the choices in `kept`. No guest that can write there may run any more: it could plant a link."""
        if self.chosen == self.kept:
            return
        for entry in self.kept.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        copy_plain(self.chosen, self.kept)


def choices(kept: Path) -> frozenset[Path]:
    """Return the files of all choices, relative to the folder."""
    return frozenset(path.relative_to(kept) for path in kept.rglob(CHOICE) if path.is_file())


def fastest_tuning(
    held: ExitStack,
    job: Job,
    side: CompiledSide,
    first: LoadedKernel,
    earlier: frozenset[Path],
    *,
    progress: Progress,
) -> FastestTuning | None:
    """Tune anew in further guests, one after another, and time all tunings.

    Copies of the folder last as long as `held`.
    `first` has tuned and left its choices in `side.kept`; `earlier` are the files of choices before it. Return None
    if it left none, or if no tuning can be timed by windows.
    """
    made = choices(side.kept) - earlier
    if not made or job.device != "cuda":
        return None
    folders = [held.enter_context(compiled_copy(side.kept)) for _ in range(TUNINGS - 1)]
    for folder in folders:
        for choice in made:
            (folder / choice).unlink(missing_ok=True)
    with ExitStack() as stack:
        opened = parallel_map(lambda folder: _opened(stack, job, side, folder), folders, serial_up_to=1)
        tuned = [(first, side.kept)]
        for number, (kernel, folder) in enumerate(zip(opened, folders, strict=True)):
            progress(f"torch.compile: tuning {number + 2} of {TUNINGS}")
            if isinstance(kernel, LoadedKernel) and _called(kernel, side.place):
                tuned.append((kernel, folder))
        taken = times_ns(job, [kernel for kernel, _ in tuned], function=side.place)
    timed = [(ns, folder) for ns, (_, folder) in zip(taken, tuned, strict=True) if not isinstance(ns, Failed)]
    if not timed:
        return None
    call_ns, chosen = min(timed)
    return FastestTuning(call_ns, side.kept, chosen)


def _opened(stack: ExitStack, job: Job, side: CompiledSide, folder: Path) -> LoadedKernel | Failed:
    stage = Stage(side.program(folder), job.isolation)
    stack.callback(stage.remove)
    return open_loaded(stack, job, stage, side.functions)


def _called(kernel: LoadedKernel, place: int) -> bool:
    """Call the compiled function once, which tunes it, and return whether it answered."""
    return not isinstance(kernel.call([kernel.case(kernel.shape)], function=place), Failed)


def compile_baselines(job: Job, *, progress: Progress) -> None:
    """Let torch.compile do its work once, so that fresh guests find its results; raise EnvironmentUnfit.

    On a GPU they find the choices of its fastest tuning.
    """
    if compiled_for(job) in COMPILED:
        return
    side = CompiledSide(
        program=partial(baseline_program, job),
        functions=tuple(baseline_function(job, kind) for kind in job.baselines),
        place=job.baselines.index("compile") if "compile" in job.baselines else 0,
        kept=compiled_folder(job),
    )
    earlier, stage = choices(side.kept), Stage(side.program(side.kept), job.isolation)
    with ExitStack() as held:
        held.callback(stage.remove)
        with ExitStack() as stack:
            first = require_opened(open_timed(stack, job, stage, side.functions), side_of_baselines(job))
            tuned = fastest_tuning(held, job, side, first, earlier, progress=progress)
        if tuned is not None:
            tuned.install()
    COMPILED.add(compiled_for(job))
