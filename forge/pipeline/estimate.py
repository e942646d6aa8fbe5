"""Estimates a candidate's speedup in seconds: two process pairs, few rounds, no confirmation.

An estimate is recorded as such and decides nothing. It tells an author whether a benchmark is worth its minutes.
"""

import math
from dataclasses import dataclass, replace

from forge.domain.policy import CONTROL_KIND, BaselineKind
from forge.errors import EnvironmentUnfit
from forge.lab.finding import Failed
from forge.lab.timing.cpu_processes import CANDIDATE, CONTROL
from forge.lab.timing.paired_interval import pair_ratios, summarise
from forge.lab.timing.screening import NO_CONTENDERS
from forge.pipeline.job import job_of, simulated
from forge.pipeline.samples import Samples
from forge.pipeline.timing_setup import TimingSetup

QUICK_PAIRS, QUICK_ROUNDS, QUICK_REPLAY_ROUNDS = 2, 4, 10
"""Number of process pairs and rounds of an estimate. Starting processes takes most of its time, and two pairs show
how far pairs differ."""
FAST_TO_START = frozenset({CONTROL_KIND, "vendor"})
"""Baselines that need no compilation first. torch.compile takes longer to compile than an estimate may take."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Ratios of one baseline to the candidate, one for each process pair."""

    baseline: BaselineKind
    baseline_ns: float
    candidate_ns: float
    ratios: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Estimated:
    """What a few samples show, and what they leave out."""

    against: tuple[Estimate, ...]
    control: tuple[float, ...]
    """Ratios of the eager baseline to itself: how far ratios go on this machine for nothing."""
    left_out: tuple[str, ...]


def estimate(setup: TimingSetup) -> Estimated | Failed:
    """Time the candidate for a few seconds; raise EnvironmentUnfit if this machine's times would mean nothing."""
    evidence = setup.evidence
    if simulated(evidence):
        raise EnvironmentUnfit(
            f"{evidence.task.language} for {evidence.task.target.gpu!r} runs in an interpreter on this machine: "
            "its time would mean nothing; estimate on the target itself"
        )
    kept = tuple(kind for kind in evidence.policy.baselines if kind in FAST_TO_START)
    quick = {
        "process_pairs": QUICK_PAIRS,
        "rounds": QUICK_ROUNDS,
        "replay_rounds": QUICK_REPLAY_ROUNDS,
        "baselines": kept,
        "regimes": ("cold",),
    }
    job = job_of(evidence)
    job = replace(job, policy=job.policy.model_copy(update=quick))
    attempt = setup.attempt(job, NO_CONTENDERS, progress=setup.progress)
    if isinstance(attempt, Failed):
        return attempt
    samples = Samples.of(attempt)
    if not samples.usable:
        raise EnvironmentUnfit(
            "the noise on this machine is larger than the work measured: no estimate can be made; end other "
            "programs, then try again"
        )
    return _seen(samples, tuple(kind for kind in evidence.policy.baselines if kind not in kept))


def _seen(samples: Samples, left_out: tuple[str, ...]) -> Estimated:
    candidate = samples.per_call_ns(CANDIDATE)
    sides: list[BaselineKind] = [kind for kind in (CONTROL_KIND, "vendor", "promoted") if kind in samples.sides]
    return Estimated(
        against=tuple(
            Estimate(
                baseline=kind,
                baseline_ns=summarise(samples.per_call_ns(kind), samples.method).median_ns,
                candidate_ns=summarise(candidate, samples.method).median_ns,
                ratios=tuple(map(math.exp, pair_ratios(samples.per_call_ns(kind), candidate))),
            )
            for kind in sides
        ),
        control=tuple(map(math.exp, pair_ratios(samples.per_call_ns(CONTROL_KIND), samples.per_call_ns(CONTROL)))),
        left_out=left_out,
    )
