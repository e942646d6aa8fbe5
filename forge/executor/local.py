"""Runs lab jobs on this machine, one measurement at a time."""

import importlib.metadata
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

from forge import __version__
from forge.contenders.discovery import ContenderCatalogue, find_contenders
from forge.domain.authoring import Screen
from forge.domain.device import Ceilings, Device
from forge.domain.policy import Policy
from forge.domain.profile import CodeFacts, OperatorTime
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.executor import MayStop, ProfilerTool, Site
from forge.executor.turns import lock_of, turn
from forge.lab.calls.artifact import staged_files
from forge.lab.contenders.present import PresentContender
from forge.lab.device.health import require_health
from forge.lab.device.out_of_memory import lacks_memory, require_room
from forge.lab.finding import Failed
from forge.lab.job import Incumbent, Job, Progress, processors
from forge.lab.judge_version import gates_sha256
from forge.lab.launch_plan.examine import examine_plan
from forge.lab.launch_plan.launcher import kept_plan
from forge.lab.packages import require_lab
from forge.lab.profile import machine_code, ncu
from forge.lab.profile.capture import Counters, capture_counters, read_machine_code
from forge.lab.profile.operators import count_operators
from forge.lab.reference.binding import answered
from forge.lab.screen.screening import DraftScreening
from forge.lab.screen.screening import screen as screen_drafts
from forge.lab.timing.calibrate import calibrate as measure_ceilings
from forge.lab.timing.cpu_processes import own_claims
from forge.lab.timing.graph_replay import ReplaySamples, measure_replays
from forge.lab.timing.roofline import cpu_ceilings, floor_ns
from forge.lab.timing.screening import NO_CONTENDERS, SCREENED, ContenderScreening, screen, screened_for
from forge.lab.timing.slope import SlopeSamples, measure
from forge.lab.verification import Examination, examine, examine_build
from forge.lookup.tuned import CONFIGURATION_FILE
from forge.platforms.capture import capture_environment
from forge.sandbox.isolation_here import isolation
from forge.sandbox.plans import PLAN_FILE
from forge.sandbox.reply import ArtifactFile


class LocalExecutor:
    """Runs lab jobs in this process, and their guests in others. It holds `lock` while it times on the processor."""

    def __init__(self, lock: Path, *, device: Device | None = None, forge_commit: str | None = None) -> None:
        self._lock = lock
        self._device = device
        """GPU that jobs run on; None for the processor."""
        self._forge_commit = forge_commit

    def site(self, policy: Policy) -> Site:
        """Describe this machine as it is now."""
        return Site(
            environment=capture_environment(
                forge_version=__version__, forge_commit=self._forge_commit, device=self._device
            ),
            device=self._device,
            isolation=isolation(),
            gates_sha256=gates_sha256(policy),
        )

    def calibrate(self) -> Ceilings:
        """Measure the GPU's ceilings while no other job of Forge runs on it; without a GPU, the processor's."""
        require_lab()
        if self._device is None:
            return cpu_ceilings(processors())
        with turn(lock_of(self._device), alone=True, progress=lambda _: None):
            return measure_ceilings(self._device)

    def examine(self, job: Job, *, progress: Progress) -> Examination:
        """Judge a candidate while no measurement runs on the device.

        One that lacks a GPU's memory beside others is judged anew while no other job of Forge runs there. Raise
        EnvironmentUnfit if it then lacks what another program holds.
        """
        examined = self._examined(job, alone=False, progress=progress)
        if job.gpu is None or not lacks_memory(examined.verdict):
            return examined
        progress("the GPU's memory ran out: judged anew while no other job runs there")
        examined = self._examined(job, alone=True, progress=progress)
        if lacks_memory(examined.verdict):
            require_room(job.gpu)
        return examined

    def _examined(self, job: Job, *, alone: bool, progress: Progress) -> Examination:
        """Judge a candidate in its turn, and check a GPU's health afterwards."""
        with turn(self._lock_of(job), alone=alone, progress=progress), answered(job) as asked:
            examined = examine(asked, progress=progress)
            if job.gpu is not None:
                require_health(job.gpu)
        return examined

    def examine_build(self, job: Job, *, progress: Progress) -> Examination:
        """Screen and build a candidate whose target isn't in this machine, while no measurement runs on this one."""
        with turn(self._lock, alone=False, progress=progress):
            return examine_build(job, progress=progress)

    def measure(
        self,
        job: Job,
        artifact: tuple[ArtifactFile, ...],
        incumbent: Incumbent | None,
        contenders: Sequence[PresentContender] = (),
        *,
        ceilings: Ceilings | None,
        rng: random.Random,
        progress: Progress,
        may_stop: MayStop | None = None,
    ) -> SlopeSamples | ReplaySamples | Failed:
        """Time a candidate against its baselines, the incumbent and the contenders, while no other job of Forge runs.

        The time is by the launch plan if the candidate has one, else by the host's clock. `may_stop` is asked after
        the first process pair. Raise ContenderFailedError if a contender fails.
        """
        plan = kept_plan(artifact)
        attempt: SlopeSamples | ReplaySamples | Failed
        with turn(self._lock_of(job), alone=True, progress=progress), answered(job) as asked:
            if plan is not None:
                incumbent_plan = kept_plan(incumbent.artifact) if incumbent else None
                attempt = measure_replays(
                    asked,
                    plan,
                    incumbent_plan,
                    contenders,
                    ceilings=_required(ceilings),
                    rng=rng,
                    progress=progress,
                    may_stop=may_stop,
                )
            else:
                attempt = measure(
                    asked, artifact, incumbent, contenders, rng=rng, progress=progress, may_stop=may_stop
                )
            if job.gpu is not None and not isinstance(attempt, ReplaySamples):
                require_health(job.gpu)  # replays already judged their last window, and their launcher has ended
        return attempt

    def artifact_at(
        self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress
    ) -> tuple[ArtifactFile, ...] | Failed:
        """Return the built files for the job's shape, with the launch plan of that shape if there is one.

        A tuned kernel has no plan for another shape: it is shipped with the configuration of the task's main shape.
        """
        captured = kept_plan(artifact)
        if captured is None:
            return artifact
        own = {PLAN_FILE, *captured.plan.cubins}
        built = tuple(file for file in artifact if file.name not in own)
        if any(file.name == CONFIGURATION_FILE for file in built):
            return _no_plan("a tuned kernel is timed at its task's main shape alone")
        progress("launch plan")
        with turn(self._lock_of(job), alone=False, progress=progress), answered(job) as asked:
            finding, files = examine_plan(asked, staged_files(asked, built))
        if isinstance(finding, Failed):
            return finding
        return (*built, *files) if kept_plan(files) is not None else _no_plan(finding.observed)

    def screen(self, job: Job, *, progress: Progress) -> ContenderScreening:
        """Screen the job's contenders, while no other job of Forge runs on the device; none if the policy says so."""
        if "contenders" not in job.policy.baselines and not job.contender_files:
            return NO_CONTENDERS
        key = screened_for(job)
        if key not in SCREENED:
            catalogue = find_contenders() if "contenders" in job.policy.baselines else ContenderCatalogue((), ())
            with turn(self._lock_of(job), alone=True, progress=progress), answered(job) as asked:
                SCREENED[key] = screen(asked, catalogue, progress=progress)
        return SCREENED[key]

    def screen_drafts(self, job: Job, step: Screen, *, rng: random.Random, progress: Progress) -> DraftScreening:
        """Screen an author's drafts, while no other job of Forge runs on the device."""
        with turn(self._lock_of(job), alone=True, progress=progress), answered(job) as asked:
            screened = screen_drafts(asked, step, rng=rng, progress=progress)
            if job.gpu is not None:
                require_health(job.gpu)
        return screened

    def floor_ns(self, job: Job, *, ceilings: Ceilings | None, resident: bool = False) -> float:
        """Return the shortest possible time for the job's shape on this machine, in nanoseconds.

        With `resident`, every operand may come from the last-level cache. Raises EnvironmentUnfit on a GPU without
        `ceilings`.
        """
        operation = job.operation
        moved, flops = operation.bytes_moved(job.shape, job.dtype), operation.flops(job.shape)
        if job.device == "cpu":
            return floor_ns(moved, cpu_ceilings(job.threads))
        written = operation.written_bytes(job.shape, job.dtype)
        # an update in place touches little of its operands, so a cache may hold it
        set_bytes = moved if operation.updates or resident else None
        return floor_ns(
            moved, _required(ceilings), written_bytes=written, flops=flops, dtype=job.dtype, set_bytes=set_bytes
        )

    def own_claims(self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress) -> dict[str, float]:
        """Return the numbers that the candidate's bench.py prints, while no other job of Forge runs on the device."""
        with turn(self._lock_of(job), alone=True, progress=progress):
            return own_claims(job, artifact)

    def _lock_of(self, job: Job) -> Path:
        return lock_of(job.gpu) if job.gpu else self._lock

    def counters(self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress) -> Counters:
        """Return a profiler's counters of the candidate's launches, while no other job runs on the device.

        Raises EnvironmentUnfit without a GPU.
        """
        if job.gpu is None:
            raise EnvironmentUnfit(
                "counters are taken on the target GPU, which isn't in this machine",
                hint="forge profile RUN --tool torch, or --tool cuobjdump",
            )
        ncu.program()
        with turn(lock_of(job.gpu), alone=True, progress=progress), answered(job) as asked:
            return capture_counters(asked, artifact)

    def operators(
        self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress
    ) -> tuple[OperatorTime, ...]:
        """Return torch's profile of the candidate's calls, while no other job of Forge runs on the device."""
        with turn(self._lock_of(job), alone=True, progress=progress), answered(job) as asked:
            return count_operators(asked, artifact)

    def machine_code(self, artifact: tuple[ArtifactFile, ...]) -> tuple[CodeFacts, ...]:
        """Return facts about the candidate's device code."""
        return read_machine_code(artifact)

    def profiler(self, job: Job) -> ProfilerTool:
        """Return the profiler to use for a job here: ncu on its GPU if it is installed, else torch."""
        return "ncu" if job.gpu is not None and ncu.is_installed() else "torch"

    def tool_version(self, tool: ProfilerTool) -> str:
        """Return a profiler's version: the last line that it prints for `--version`."""
        if tool == "torch":
            return importlib.metadata.version("torch")
        program = ncu.program() if tool == "ncu" else machine_code.program()
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
        return (said.strip().splitlines() or ["not reported"])[-1][:200]


def _no_plan(why: str) -> Failed:
    reason = Reason(code="INFRASTRUCTURE", message=f"no launch plan at this shape: {why}"[:2000])
    return Failed(reason=reason, observed=reason.message, threshold="a launch plan")


def _required(ceilings: Ceilings | None) -> Ceilings:
    if ceilings is None:
        raise EnvironmentUnfit(
            "no floor can be computed: this GPU's ceilings aren't measured; measure them first",
            hint="forge doctor --calibrate",
        )
    return ceilings
