"""The guests of one measurement: the candidate's, the baselines', and the control's, fresh for every pair.

The baselines run the trusted reference in a sandbox of their own, behind the same wall, wire and loop. What
torch.compile makes for them is kept between pairs in a folder that no candidate ever sees.
"""

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from forge.domain.candidate import Metadata
from forge.domain.policy import CONTROL_KIND, BaselineKind
from forge.domain.tensors import TORCH_NAMES
from forge.errors import EnvironmentUnfit
from forge.lab.baselines import COMPILED, baseline_function, baseline_program, compiled_folder, compiled_for
from forge.lab.calls.artifact import build_artifact, staged_files
from forge.lab.calls.load import arena_bytes
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.gates.own_tests import own_benchmark_claims
from forge.lab.job import Job, Rival
from forge.sandbox.arena import Arena
from forge.sandbox.reply import ArtifactFile, Refused
from forge.sandbox.session import IDLE, GuestFunction, Session
from forge.sandbox.stage import Program, Stage

CANDIDATE, CONTROL, HARNESS = "candidate", "control", "harness"
PROMOTED: BaselineKind = "promoted"
WHOLE_LIMIT_S = 7200.0
"""A backstop for guests that mostly wait for their turn; a candidate's own time is limited by the policy."""

HARNESS_SOURCE = """
import torch

_kept = []


def harness(*operands):
    if not _kept:
        device = operands[0].device
        _kept.extend(torch.empty(sizes, dtype=getattr(torch, name), device=device) for sizes, name in {outputs})
    return tuple(_kept) if len(_kept) > 1 else _kept[0] if _kept else None
"""
"""Returns the same tensors every time: what remains on a device is the cost of the path itself."""


class RivalFailedError(Exception):
    """The promoted kernel failed, or answered wrongly, while it was timed: it is no baseline."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.reason.message)
        self.failed = failed


class GuestSet:
    """Open sessions, addressed by side; use as a context manager."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._sides: dict[str, tuple[LoadedKernel, int]] = {}

    def add(self, side: str, kernel: LoadedKernel, function: int) -> None:
        """Name one function of one guest."""
        self._sides[side] = (kernel, function)

    @property
    def sides(self) -> tuple[str, ...]:
        """All sides, in the order they were added."""
        return tuple(self._sides)

    def kernel(self, side: str) -> LoadedKernel:
        """The guest that a side runs in."""
        return self._sides[side][0]

    def function(self, side: str) -> int:
        """The side's function within its guest."""
        return self._sides[side][1]

    def pairs(self) -> list[tuple[str, LoadedKernel]]:
        """Sides with their guests, without the harness, which does no work."""
        return [(side, kernel) for side, (kernel, _) in self._sides.items() if side != HARNESS]

    def __enter__(self) -> "GuestSet":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class GuestFactory:
    """Stages made once per measurement, and the fresh guests started on them."""

    def __init__(self, job: Job, candidate: Stage, baseline: Stage, rival: tuple[Stage, str] | None = None) -> None:
        self._job = job
        self._candidate = candidate
        self._baseline = baseline
        self._rival = rival

    def compile_baselines(self) -> None:
        """Have torch.compile do its work once, so that fresh guests find it done; raise EnvironmentUnfit."""
        if compiled_for(self._job) in COMPILED:
            return
        with ExitStack() as stack:
            functions = tuple(baseline_function(self._job, kind) for kind in self._job.baselines)
            _trusted(self._open(stack, self._baseline, functions), "a baseline")
        COMPILED.add(compiled_for(self._job))

    def fresh(self) -> GuestSet | Failed:
        """Start new processes for every side, at the same time, and have each make its first calls.

        Only the candidate's failure is the candidate's: raise EnvironmentUnfit if a baseline fails.
        """
        stack = ExitStack()
        wanted = self._wanted()
        zygote = self._candidate.fresh_zygote(self._job.threads)
        if zygote is not None:
            stack.callback(zygote.close)
        with ThreadPoolExecutor(len(wanted)) as pool:
            openings = [
                pool.submit(self._open, stack, stage.forked_from(zygote), functions) for _, stage, functions in wanted
            ]
        try:
            guests = GuestSet(stack)
            for (names, _, _), opening in zip(wanted, openings, strict=True):
                opened = opening.result()
                if isinstance(opened, Failed) and CANDIDATE in names:
                    stack.close()
                    return opened
                kernel = _trusted(opened, f"the side {names[0]!r}")
                for index, name in enumerate(names):
                    idle = name == HARNESS and self._job.device == "cpu"
                    guests.add(name, kernel, IDLE if idle else index)
            return guests
        except BaseException:
            stack.close()
            raise

    def _wanted(self) -> list[tuple[tuple[str, ...], Stage, tuple[GuestFunction, ...]]]:
        """Each side alone, for what else a process has loaded slows it down; the path beside both of the control."""
        job = self._job
        # on a processor the path is a release without calls, and needs no function
        path = (GuestFunction("harness.py", HARNESS),) if job.device == "cuda" else ()
        control = baseline_function(job, CONTROL_KIND), *path
        others = [kind for kind in job.baselines if kind != CONTROL_KIND]
        wanted: list[tuple[tuple[str, ...], Stage, tuple[GuestFunction, ...]]] = [
            ((CANDIDATE,), self._candidate, (GuestFunction("kernel.py", job.entry_point, wrap=job.wrap),)),
            ((CONTROL_KIND, HARNESS), self._baseline, control),
            *(((kind,), self._baseline, (baseline_function(job, kind),)) for kind in others),
            ((CONTROL,), self._baseline, control),
        ]
        if self._rival is not None:
            stage, entry_point = self._rival
            wanted.append(((PROMOTED,), stage, (GuestFunction("kernel.py", entry_point, wrap=job.wrap),)))
        return wanted

    def _open(
        self,
        stack: ExitStack,
        stage: Stage,
        functions: tuple[GuestFunction, ...],
    ) -> LoadedKernel | Failed:
        job = self._job
        arena = Arena(arena_bytes(job))
        stack.callback(arena.close)
        limits = job.limits(WHOLE_LIMIT_S)
        session = stack.enter_context(
            Session(stage, arena, limits=limits, threads=job.threads, reply_limit_s=job.policy.benchmark_limit_s)
        )
        loaded = session.load(functions)
        if isinstance(loaded, Refused):
            reason = loaded.reason
            return Failed(reason=reason, observed=reason.message, threshold="every side loads", log=loaded.log)
        kernel = LoadedKernel(
            session,
            arena,
            operation=job.operation,
            shape=job.shape,
            held_out=(),
            dtype=job.dtype,
            policy=job.policy,
            entry=functions[0].entry_point,
            device=job.device,
            interpreted=job.interpreted,
        )
        for index in range(len(functions)):
            called = kernel.call([kernel.case(kernel.shape)], function=index)
            if isinstance(called, Failed):
                return called
        return kernel


def _trusted(opened: LoadedKernel | Failed, side: str) -> LoadedKernel:
    if isinstance(opened, Failed):
        raise EnvironmentUnfit(f"{side} failed on this machine: {opened.reason.message}; {opened.log[-500:]}")
    return opened


@contextmanager
def open_guests(job: Job, artifact: tuple[ArtifactFile, ...], rival: Rival | None = None) -> Iterator[GuestFactory]:
    """Stage the candidate and the baselines; leave nothing behind."""
    harness = {"harness.py": HARNESS_SOURCE.format(outputs=_output_forms(job)).encode()}
    own = _candidate_program(job, artifact)
    with ExitStack() as stack:
        candidate_stage, baseline_stage = (
            Stage(own, job.isolation),
            Stage(baseline_program(job, compiled_folder(job), harness), job.isolation),
        )
        stack.callback(candidate_stage.remove)
        stack.callback(baseline_stage.remove)
        if rival is None:
            yield GuestFactory(job, candidate_stage, baseline_stage)
            return
        rival_stage = Stage(dataclasses.replace(own, files=_rivals_files(job, rival)), job.isolation)
        stack.callback(rival_stage.remove)
        yield GuestFactory(job, candidate_stage, baseline_stage, (rival_stage, rival.entry_point))


def _candidate_program(job: Job, artifact: tuple[ArtifactFile, ...]) -> Program:
    files = staged_files(job, artifact)
    return Program(language=job.language, files=files, environment=job.environment, device=job.device, gpu=job.gpu)


def _rivals_files(job: Job, rival: Rival) -> dict[str, bytes]:
    """What the promoted kernel's guest loads; raise EnvironmentUnfit if it can't be built here."""
    promoted = dataclasses.replace(job, files=rival.files)
    artifact = _built_anew(promoted) if job.language.builds and not rival.artifact else rival.artifact
    return staged_files(promoted, artifact)


def _built_anew(promoted: Job) -> tuple[ArtifactFile, ...]:
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
    """Sizes and torch's names of the outputs' element types, at the shape that is timed."""
    return [(spec.sizes(job.shape), TORCH_NAMES[spec.element_type(job.dtype)]) for spec in job.operation.returned]


def own_claims(job: Job, artifact: tuple[ArtifactFile, ...]) -> dict[str, float]:
    """Run the candidate's bench.py in a sandbox of its own; what it prints is a claim."""
    stage = Stage(dataclasses.replace(_candidate_program(job, artifact), warm=True), job.isolation)
    try:
        return own_benchmark_claims(stage, limits=job.limits(job.policy.benchmark_limit_s), threads=job.threads)
    finally:
        stage.remove()
