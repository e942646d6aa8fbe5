"""Starts the guests of one measurement by the host's clock: candidate, baselines and control, new for every pair.

The baselines run the trusted reference in a sandbox of their own, behind the same wall, wire and loop. A folder keeps
torch.compile's results for them between pairs; no candidate ever sees this folder.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from forge.domain.candidate import Metadata
from forge.domain.policy import CONTROL_KIND
from forge.domain.tensors import TORCH_NAMES
from forge.errors import EnvironmentUnfit
from forge.lab.baselines import baseline_function, baseline_program, compiled_folder
from forge.lab.calls.artifact import build_artifact, staged_files
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.contenders.guests import contender_folder, contender_program
from forge.lab.contenders.present import PresentContender
from forge.lab.finding import Failed
from forge.lab.gates.own_tests import own_benchmark_claims
from forge.lab.job import Incumbent, Job
from forge.lab.timing.contender_failure import raise_for_contender
from forge.lab.timing.incumbent import PROMOTED
from forge.lab.timing.timed_guest import open_timed, require_opened
from forge.languages import LANGUAGES
from forge.sandbox.reply import ArtifactFile, Refused
from forge.sandbox.session import IDLE, GuestFunction
from forge.sandbox.stage import Program, Stage

CANDIDATE, CONTROL, HARNESS = "candidate", "control", "harness"
"""Names of sides: the candidate, the baseline measured a second time, and the empty guest."""
HARNESS_FILE = "harness.py"
"""Name of the file of the empty guest's function."""
HARNESS_SOURCE = """
import torch

_kept = []


def harness(*operands):
    if not _kept:
        device = operands[0].device
        _kept.extend(torch.ones(sizes, dtype=getattr(torch, name), device=device) for sizes, name in {outputs})
    return tuple(_kept) if len(_kept) > 1 else _kept[0] if _kept else None
"""
"""Source of a function that returns the same tensors every time. A device then shows only the cost of the path, and a
processor what the harness does with outputs. They are written to, since reading memory that never was is faster."""


class GuestSet:
    """Open sessions, addressed by side; use as a context manager."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._sides: dict[str, tuple[LoadedKernel, int]] = {}

    def add(self, side: str, kernel: LoadedKernel, function: int) -> None:
        """Register a function of a guest as a side."""
        self._sides[side] = (kernel, function)

    @property
    def sides(self) -> tuple[str, ...]:
        """All sides, in the order they were added."""
        return tuple(self._sides)

    def kernel(self, side: str) -> LoadedKernel:
        """Return the guest that a side runs in."""
        return self._sides[side][0]

    def function(self, side: str) -> int:
        """Return the place of a side's function among the functions of its guest, from 0."""
        return self._sides[side][1]

    def pairs(self) -> list[tuple[str, LoadedKernel]]:
        """Return the sides with their guests, without the harness, which does no work."""
        return [(side, kernel) for side, (kernel, _) in self._sides.items() if side != HARNESS]

    def __enter__(self) -> "GuestSet":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class GuestFactory:
    """The stages of one measurement, and a way to start fresh guests on them."""

    def __init__(
        self,
        job: Job,
        candidate: Stage,
        baseline: Stage,
        incumbent: tuple[Stage, str] | None = None,
        contenders: Sequence[tuple[PresentContender, Stage]] = (),
        *,
        empty: Stage | None = None,
    ) -> None:
        """Take the stages; `empty` is that of the empty guest, on a CPU."""
        self._job = job
        self._empty = empty
        self._candidate = candidate
        self._baseline = baseline
        self._incumbent = incumbent
        self._contenders = contenders

    def fresh(self) -> GuestSet | Failed:
        """Start new processes for every side at the same time, and let each make its first calls.

        Return a failure only for the candidate; raise EnvironmentUnfit if a baseline fails.
        """
        stack = ExitStack()
        wanted = self._wanted()
        zygote = self._candidate.fresh_zygote(self._job.threads)
        if zygote is not None:
            stack.callback(zygote.close)
        with ThreadPoolExecutor(len(wanted)) as pool:
            openings = [
                pool.submit(open_timed, stack, self._job, stage.forked_from(zygote), functions)
                for _, stage, functions in wanted
            ]
        try:
            guests = GuestSet(stack)
            for (names, _, _), opening in zip(wanted, openings, strict=True):
                opened = opening.result()
                if isinstance(opened, Failed) and CANDIDATE in names:
                    stack.close()
                    return opened
                if isinstance(opened, Failed):
                    raise_for_contender(names[0], opened)
                kernel = require_opened(opened, f"the side {names[0]!r}")
                for index, name in enumerate(names):
                    idle = name == HARNESS and self._job.device == "cpu"
                    guests.add(name, kernel, IDLE if idle else index)
            return guests
        except BaseException:
            stack.close()
            raise

    def _wanted(self) -> list[tuple[tuple[str, ...], Stage, tuple[GuestFunction, ...]]]:
        """List the processes to start, with one side each, since another loaded side slows a process down.

        On a CPU the harness is a release without calls, in a process of its own. In the baseline's process it would
        touch the inputs once more than in the control's. The baseline then read 5 to 20 % faster than its control.
        No reference is in that process: a reference file is foreign code, and could lengthen what is subtracted. On a
        GPU the harness is a function in both processes of the control's baseline.
        """
        job = self._job
        on_cpu = job.device == "cpu"
        harness = GuestFunction(HARNESS_FILE, HARNESS)
        control = (baseline_function(job, CONTROL_KIND), *(() if on_cpu else (harness,)))
        others = [kind for kind in job.baselines if kind != CONTROL_KIND]
        wanted: list[tuple[tuple[str, ...], Stage, tuple[GuestFunction, ...]]] = [
            ((CANDIDATE,), self._candidate, (job.candidate_function(),)),
            ((CONTROL_KIND,) if on_cpu else (CONTROL_KIND, HARNESS), self._baseline, control),
            *([((HARNESS,), self._empty, (harness,))] if self._empty is not None else ()),
            *(((kind,), self._baseline, (baseline_function(job, kind),)) for kind in others),
            ((CONTROL,), self._baseline, control),
        ]
        wanted += [((one.name,), stage, (one.function,)) for one, stage in self._contenders]
        if self._incumbent is not None:
            stage, entry_point = self._incumbent
            wanted.append(((PROMOTED,), stage, (job.candidate_function(entry_point),)))
        return wanted


@contextmanager
def open_guests(
    job: Job,
    artifact: tuple[ArtifactFile, ...],
    incumbent: Incumbent | None = None,
    contenders: Sequence[PresentContender] = (),
) -> Iterator[GuestFactory]:
    """Stage the candidate and the baselines; remove the stages at the end."""
    harness = {HARNESS_FILE: HARNESS_SOURCE.format(outputs=_output_forms(job)).encode()}
    own = candidate_program(job, artifact)
    with ExitStack() as stack:
        candidate_stage, baseline_stage = (
            Stage(own, job.isolation),
            Stage(baseline_program(job, compiled_folder(job), harness), job.isolation),
        )
        stack.callback(candidate_stage.remove)
        stack.callback(baseline_stage.remove)
        empty = _empty_stage(stack, job, harness)
        beside = [(one, _contender_stage(stack, job, one)) for one in contenders]
        if incumbent is None:
            yield GuestFactory(job, candidate_stage, baseline_stage, None, beside, empty=empty)
            return
        promoted = dataclasses.replace(own, files=_incumbent_files(job, incumbent), allowance=None)
        incumbent_stage = Stage(promoted, job.isolation)
        stack.callback(incumbent_stage.remove)
        promoted_side = (incumbent_stage, incumbent.entry_point)
        yield GuestFactory(job, candidate_stage, baseline_stage, promoted_side, beside, empty=empty)


def _empty_stage(stack: ExitStack, job: Job, harness: Mapping[str, bytes]) -> Stage | None:
    """Return the stage of the empty guest, which has no line of a candidate's or a reference's; None on a GPU."""
    if job.device != "cpu":
        return None
    stage = Stage(Program(language=LANGUAGES["torch"], files=harness), job.isolation)
    stack.callback(stage.remove)
    return stage


def _contender_stage(stack: ExitStack, job: Job, contender: PresentContender) -> Stage:
    stage = Stage(contender_program(job, contender, contender_folder(job, contender)), job.isolation)
    stack.callback(stage.remove)
    return stage


def candidate_program(job: Job, artifact: tuple[ArtifactFile, ...]) -> Program:
    """Return the program of a candidate's guest: its files, the built ones, and its device."""
    files = staged_files(job, artifact)
    return Program(
        language=job.language,
        files=files,
        environment=job.environment,
        device=job.device,
        gpu=job.gpu,
        allowance=job.allowance,
    )


def _incumbent_files(job: Job, incumbent: Incumbent) -> dict[str, bytes]:
    """Return the files that the incumbent's guest loads; raise EnvironmentUnfit if it can't be built here."""
    promoted = dataclasses.replace(job, files=incumbent.files, allowance=None)
    artifact = _rebuilt(promoted) if job.language.builds and not incumbent.artifact else incumbent.artifact
    return staged_files(promoted, artifact)


def _rebuilt(promoted: Job) -> tuple[ArtifactFile, ...]:
    try:
        metadata = Metadata.model_validate_json(promoted.files["metadata.json"])
        built = build_artifact(dataclasses.replace(promoted, metadata=metadata))
    except ValueError as error:
        raise _unbuildable(str(error)) from error
    if isinstance(built, Refused):
        raise _unbuildable(built.reason.message)
    return built.files


def _unbuildable(said: str) -> EnvironmentUnfit:
    return EnvironmentUnfit(
        f"the promoted kernel can't be built on this machine: {said}",
        hint="measure where it builds, or take it out with forge kernel deprecate or forge kernel revoke",
    )


def _output_forms(job: Job) -> list[tuple[tuple[int, ...], str]]:
    """Return sizes and torch's type name of each output at the timed shape."""
    return [(spec.sizes(job.shape), TORCH_NAMES[spec.element_type(job.dtype)]) for spec in job.operation.returned]


def own_claims(job: Job, artifact: tuple[ArtifactFile, ...]) -> dict[str, float]:
    """Run the candidate's bench.py in a separate sandbox; its numbers are only claims."""
    unlimited = dataclasses.replace(job, allowance=None)  # bench.py isn't what is judged
    stage = Stage(dataclasses.replace(candidate_program(unlimited, artifact), warm=True), job.isolation)
    try:
        return own_benchmark_claims(stage, limits=job.limits(job.policy.benchmark_limit_s), threads=job.threads)
    finally:
        stage.remove()
