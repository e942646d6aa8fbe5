"""Screens contenders: which are right, and which of those are fast enough to be measured in full.

Each contender runs in a guest of its own, as foreign code. It answers questions at the task's shape, by the same
bound as a candidate. Those that are right take turns in a few short windows. The fastest are then measured beside the
candidate in every round, so a benchmark costs about the same, however many contenders are installed.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from forge.contenders.discovery import ContenderCatalogue
from forge.domain.contender import ContenderFailed, ContenderStanding, MeasuredInFull, ScreenedOut
from forge.domain.input_kind import InputKind
from forge.domain.verdict import Reason
from forge.lab.calls.load import loaded
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.contenders.guests import contender_folder, contender_program
from forge.lab.contenders.present import PresentContender, look_up
from forge.lab.contenders.required import require_contenders
from forge.lab.finding import Failed
from forge.lab.job import Job, Progress
from forge.lab.parallel import parallel_map
from forge.lab.timing.screening_windows import times_ns
from forge.lab.timing.tunings import CompiledSide, choices, fastest_tuning
from forge.sandbox.stage import Stage

MOST_IN_FULL = 2
"""Number of contenders that are measured in full, at most. Chosen; each adds a process, and a window to every
round."""
NEAR_FASTEST = 1.25
"""Ratio of a contender's time in the screening to the fastest one's, up to which it is measured in full. It leaves
room for the noise of a few short windows."""
DRAWS: tuple[InputKind, ...] = ("normal", "uniform") * 2
"""Kinds of values that every contender is asked first."""
HARD: tuple[InputKind, ...] = ("large", "small", "offset_mean", "outlier_channel", "rows_apart", "heavy_tails")
"""Kinds of values after those, if the operation is defined there: sums overflow, cancel or lose small terms."""
LOG_CHARACTERS = 200
"""Largest number of characters of a contender's last log line in its reason. Chosen; it is about two lines of a
terminal."""


@dataclass(frozen=True)
class ContenderScreening:
    """What became of every contender of a job."""

    right: tuple[PresentContender, ...]
    """Contenders that answered correctly, the fastest first."""
    chosen: frozenset[str]
    """Names of those to measure beside the candidate."""
    standings: tuple[ContenderStanding, ...]

    @property
    def in_full(self) -> tuple[PresentContender, ...]:
        """The contenders to measure beside the candidate, the fastest first."""
        return tuple(one for one in self.right if one.name in self.chosen)

    def without(self, name: str, failed: Failed) -> "ContenderScreening":
        """Return the screening after a contender failed while it was measured in full."""
        standings = (_refused(one, failed) if one.name == name else one for one in self.standings)
        return ContenderScreening(
            tuple(one for one in self.right if one.name != name), self.chosen - {name}, tuple(standings)
        )

    def beside(self, names: frozenset[str]) -> "ContenderScreening | None":
        """Return the screening with these contenders chosen, so that samples can be added to earlier ones.

        Return None if one of them isn't right here and now.
        """
        if not names <= {one.name for one in self.right}:
            return None
        return ContenderScreening(
            self.right, names, tuple(_chosen(one, in_full=one.name in names) for one in self.standings)
        )


def _refused(standing: ContenderStanding, failed: Failed) -> ContenderStanding:
    return standing.model_copy(update={"standing": _failed(failed)})


def _chosen(standing: ContenderStanding, *, in_full: bool) -> ContenderStanding:
    timed = standing.standing
    if not isinstance(timed, MeasuredInFull | ScreenedOut):
        return standing
    other = MeasuredInFull(least_ns=timed.least_ns) if in_full else ScreenedOut(least_ns=timed.least_ns)
    return standing.model_copy(update={"standing": other})


def _compiled(job: Job, contender: PresentContender) -> CompiledSide:
    """Return a contender that is the reference in another mode of torch.compile."""
    return CompiledSide(
        program=partial(contender_program, job, contender),
        functions=(contender.function,),
        place=0,
        kept=contender_folder(job, contender),
    )


NO_CONTENDERS = ContenderScreening((), frozenset(), ())
"""The screening of a job whose policy asks for no contenders."""
SCREENED: dict[tuple[object, ...], ContenderScreening] = {}
"""Screenings of this process by what they depend on; see `screened_for`."""


def screened_for(job: Job) -> tuple[object, ...]:
    """Return the key of a screening: it depends on the task and the machine, and on no candidate."""
    files = tuple(one.described.name for one in job.contender_files)
    task = (job.operation.name, job.dtype, tuple(sorted(job.shape.items())), files)
    return (*task, job.device, job.gpu, job.arch, job.policy, job.isolation)


def screen(job: Job, catalogue: ContenderCatalogue, *, progress: Progress) -> ContenderScreening:
    """Ask all contenders of a job whether they are right, and time those that are.

    Raise EnvironmentUnfit if the policy requires one that isn't here.
    """
    present, absent = look_up(job, catalogue)
    require_contenders(job.policy.required_contenders, catalogue, absent)
    compiled = {one.name: _compiled(job, one) for one in present if one.source is None}
    earlier = {name: choices(side.kept) for name, side in compiled.items()}
    with ExitStack() as held:
        with ExitStack() as stack:
            progress(f"contenders: {len(present)} installed of {len(present) + len(absent)}")
            examined = _all_examined(stack, job, present)
            answering = [
                (contender, kernel)
                for contender, kernel in zip(present, examined, strict=True)
                if isinstance(kernel, LoadedKernel)
            ]
            taken_ns = times_ns(job, [kernel for _, kernel in answering])
            tuned = {
                one.name: fastest_tuning(held, job, compiled[one.name], kernel, earlier[one.name], progress=progress)
                for one, kernel in answering
                if one.name in compiled
            }
        taken = {contender.name: taken for (contender, _), taken in zip(answering, taken_ns, strict=True)}
        for name, tuning in tuned.items():
            if tuning is not None:
                tuning.install()
                taken[name] = tuning.call_ns
    found = [*zip((one.name for one in present), examined, strict=True), *taken.items()]
    failed = {name: one for name, one in found if isinstance(one, Failed)}
    right = {name: taken_ns for name, taken_ns in taken.items() if not isinstance(taken_ns, Failed)}
    chosen = fastest(right)
    standings = [
        _standing(one, failed.get(one.name), right.get(one.name), in_full=one.name in chosen) for one in present
    ]
    ranked = sorted((one for one in present if one.name in right), key=lambda one: (right[one.name], one.name))
    return ContenderScreening(tuple(ranked), chosen, (*standings, *absent))


def _all_examined(stack: ExitStack, job: Job, present: Sequence[PresentContender]) -> list[LoadedKernel | Failed]:
    """Open every contender's guest, which ends with `stack`, and judge its answers."""
    opened = [stack.enter_context(ExitStack()) for _ in present]
    serial = 1 if job.runner.leaves_host_idle else len(present)
    return parallel_map(
        lambda one: _examined(one[0], job, one[1]), list(zip(opened, present, strict=True)), serial_up_to=serial
    )


def fastest(times_ns: dict[str, float]) -> frozenset[str]:
    """Return the names to measure in full: the fastest few, and none that is far slower than the fastest."""
    ranked = sorted(times_ns, key=lambda name: (times_ns[name], name))
    return frozenset(name for name in ranked[:MOST_IN_FULL] if times_ns[name] <= NEAR_FASTEST * times_ns[ranked[0]])


def _standing(
    contender: PresentContender, failed: Failed | None, least_ns: float | None, *, in_full: bool
) -> ContenderStanding:
    standing: ContenderFailed | MeasuredInFull | ScreenedOut
    if failed is not None or least_ns is None:
        assert failed is not None, "a contender without a time has failed"
        standing = _failed(failed)
    else:
        standing = MeasuredInFull(least_ns=least_ns) if in_full else ScreenedOut(least_ns=least_ns)
    return ContenderStanding(
        contender=contender.id,
        package=contender.package,
        version=contender.version,
        licence=contender.licence,
        standing=standing,
    )


def _failed(failed: Failed) -> ContenderFailed:
    """Return the failure with the last line that the contender printed, where an exception says what it was."""
    said = [line.strip() for line in failed.log.splitlines() if line.strip()]
    last = f": {said[-1][:LOG_CHARACTERS]}" if said and failed.reason.code in _SAYS_WHY else ""
    message = failed.reason.message.replace("kernel.py", "the contender").replace("the candidate", "the contender")
    return ContenderFailed(reason=Reason(code=failed.reason.code, message=f"{message}{last}"))


_SAYS_WHY = frozenset({"RUNTIME_ERROR", "COMPILE_ERROR", "STATE_CARRIED", "BAD_SUBMISSION"})
"""Reason codes whose cause stands in the last line of the log."""


def _examined(stack: ExitStack, job: Job, contender: PresentContender) -> LoadedKernel | Failed:
    """Open a contender's guest, which ends with `stack`, and judge its answers."""
    kernel = stack.enter_context(_opened(job, contender))
    failed = kernel if isinstance(kernel, Failed) else _wrong(kernel)
    if failed is not None:
        stack.close()
        return failed
    assert isinstance(kernel, LoadedKernel), "taken as failed above"
    return kernel


@contextmanager
def _opened(job: Job, contender: PresentContender) -> Iterator[LoadedKernel | Failed]:
    """Start a contender's guest; what its compilers leave stays for the guests that are timed in full."""
    asked = replace(job, entry_point=contender.function.entry_point)
    limits = job.limits(job.policy.benchmark_limit_s)
    stage = Stage(contender_program(job, contender, contender_folder(job, contender)), job.isolation)
    try:
        with loaded(asked, stage, limits, contender.function, label=f"contender {contender.name}") as kernel:
            yield kernel
    finally:
        stage.remove()


def _wrong(kernel: LoadedKernel) -> Failed | None:
    """Return why the answers at the task's shape aren't right; None if all are."""
    kinds = kernel.definition.kinds((*DRAWS, *HARD))
    for case in kernel.cases(kernel.shape, kinds):
        checked = kernel.check([case])
        if isinstance(checked, Failed):
            return checked
    return None
