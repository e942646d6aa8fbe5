"""What a measurement of one candidate needs: its files, a place, a kernel to compare with, rates, random numbers."""

import random
from dataclasses import dataclass

from forge.domain.device import Ceilings
from forge.domain.digest import sha256
from forge.executor import Executor, MayStop
from forge.lab.finding import Failed
from forge.lab.job import Incumbent, Job, Progress
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.screening import ContenderScreening
from forge.lab.timing.slope import SlopeSamples
from forge.pipeline.job import RecordedCandidate
from forge.pipeline.samples import Samples
from forge.pipeline.timings import Measured
from forge.sandbox.plans import PLAN_FILE
from forge.sandbox.reply import ArtifactFile


@dataclass(frozen=True, kw_only=True)
class TimingSetup:
    """One candidate at the shape of its task, and what is needed to time it there."""

    evidence: RecordedCandidate
    executor: Executor
    artifact: tuple[ArtifactFile, ...]
    incumbent: Incumbent | None
    """Promoted kernel to compare with. None: the family has none."""
    ceilings: Ceilings | None
    """Highest rates of the GPU. None: the processor is timed."""
    rng: random.Random
    progress: Progress

    def attempt(
        self, job: Job, beside: ContenderScreening, *, progress: Progress, may_stop: MayStop | None = None
    ) -> SlopeSamples | ReplaySamples | Failed:
        """Time the candidate once, beside the incumbent and the contenders that the screening chose."""
        return self.executor.measure(
            job,
            self.artifact,
            self.incumbent,
            beside.in_full,
            ceilings=self.ceilings,
            rng=self.rng,
            progress=progress,
            may_stop=may_stop,
        )

    def measured(
        self, job: Job, samples: Samples, beside: ContenderScreening, *, claims: dict[str, float]
    ) -> Measured:
        """Return the samples with the floors, the digest of the launch plan, and the contenders' standings."""
        plan = next((file for file in self.artifact if file.name == PLAN_FILE), None)
        floor_ns = self.executor.floor_ns(job, ceilings=self.ceilings)
        resident_ns = self.executor.floor_ns(job, ceilings=self.ceilings, resident=True) if job.gpu else None
        return Measured(
            samples=samples,
            floor_ns=floor_ns,
            resident_floor_ns=resident_ns,
            claims=claims,
            plan_sha256=sha256(plan.content) if plan else None,
            contenders=beside.standings,
        )
