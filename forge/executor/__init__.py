"""Where lab jobs run: the protocol of an executor, and the site that an executor describes.

`local` runs jobs on this machine. Another place is another module whose class keeps the protocol; the phases and the
application know nothing else of it.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from forge.domain.authoring import Screen
from forge.domain.device import Ceilings, Device
from forge.domain.digest import Digest
from forge.domain.environment import Environment
from forge.domain.evidence import Isolation
from forge.domain.policy import Policy
from forge.domain.profile import CodeFacts, OperatorTime
from forge.lab.contenders.present import PresentContender
from forge.lab.finding import Failed
from forge.lab.job import Incumbent, Job, Progress
from forge.lab.profile.capture import Counters
from forge.lab.screen.screening import DraftScreening
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.screening import ContenderScreening
from forge.lab.timing.slope import SlopeSamples
from forge.lab.verification import Examination
from forge.sandbox.reply import ArtifactFile

ProfilerTool = Literal["ncu", "torch", "cuobjdump"]
"""Name of a tool that explains a candidate's time."""
MayStop = Callable[[SlopeSamples | ReplaySamples], bool]
"""Function that is given the samples of a first process pair, and returns whether no further pair is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The place where an executor runs its jobs, as the evidence from there names it."""

    environment: Environment
    device: Device | None
    """GPU that jobs run on; None for the processor."""
    isolation: Isolation
    """Strongest sandbox that can be built there."""
    gates_sha256: Digest
    """Version of the judge there, under the policy that was asked about."""


class Executor(Protocol):
    """Runs lab jobs at one site, which stays the same for the executor's life."""

    def site(self, policy: Policy) -> Site:
        """Describe the place where jobs run."""

    def calibrate(self) -> Ceilings:
        """Measure the highest rates of the site's GPU, or of its processor."""

    def examine(self, job: Job, *, progress: Progress) -> Examination:
        """Judge a candidate while no measurement runs on the device."""

    def examine_build(self, job: Job, *, progress: Progress) -> Examination:
        """Screen and build a candidate whose target isn't at the site."""

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
        """Time a candidate against baselines, incumbent and contenders, while no other job runs on the device.

        `ceilings` are those of the site's GPU; without a GPU they aren't needed. If `may_stop` agrees after the first
        process pair, that pair's samples are returned.
        """

    def artifact_at(
        self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress
    ) -> tuple[ArtifactFile, ...] | Failed:
        """Return a candidate's built files for the job's shape: with the launch plan of that shape, if it has one.

        The plan is judged as in a verification.
        """

    def screen(self, job: Job, *, progress: Progress) -> ContenderScreening:
        """Ask the job's contenders at the site whether they are right, and time those that are."""

    def screen_drafts(self, job: Job, step: Screen, *, rng: random.Random, progress: Progress) -> DraftScreening:
        """Screen an author's drafts at the site. The result ranks drafts, and is never evidence."""

    def floor_ns(self, job: Job, *, ceilings: Ceilings | None, resident: bool = False) -> float:
        """Return the shortest possible time for the job's shape at the site, in nanoseconds.

        With `resident`, every operand may come from the last-level cache.
        """

    def own_claims(self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress) -> dict[str, float]:
        """Return the numbers that the candidate's bench.py prints."""

    def counters(self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress) -> Counters:
        """Return a profiler's counters of the candidate's launches; raise EnvironmentUnfit without the GPU."""

    def operators(
        self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress
    ) -> tuple[OperatorTime, ...]:
        """Return torch's profile of the candidate's calls."""

    def machine_code(self, artifact: tuple[ArtifactFile, ...]) -> tuple[CodeFacts, ...]:
        """Return facts about the candidate's device code."""

    def profiler(self, job: Job) -> ProfilerTool:
        """Return the profiler to use for a job at the site."""

    def tool_version(self, tool: ProfilerTool) -> str:
        """Return a profiler's version."""
