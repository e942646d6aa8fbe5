"""Evidence made up event by event, and pages held against it."""

from hypothesis import strategies as st

from forge.claims import ClaimEvidence, PageReport, check_page
from forge.claims.evidence import Measurement, Withdrawn
from forge.domain.evidence import Interval, Speedup, Timing, WorkloadTiming
from forge.domain.policy import BaselineKind
from forge.events.promote import KernelPromoted
from tests.projections.histories import History, benchmarked
from tests.projections.values import SHAPE, digest, environment, task

SEQ, PROMOTED_SEQ = 41, 45


def promotion(*, gpu: str = "h200") -> KernelPromoted:
    """A promotion as the pipeline makes one."""
    return benchmarked(History(), wanted=task(gpu=gpu)).promotion()


PROMOTIONS = {gpu: promotion(gpu=gpu) for gpu in ("h200", "rtx4070", "cpu")}


def timing(ratios: dict[BaselineKind, tuple[float, float, float]], *, median_ns: float = 1892.0) -> WorkloadTiming:
    """Times whose ratios over each baseline are (ratio, low, high)."""
    speedups = tuple(
        Speedup(
            baseline=kind,
            baseline_median_ns=median_ns * ratio,
            interval=Interval(ratio=ratio, low=low, high=high),
            pairs_lost=0,
        )
        for kind, (ratio, low, high) in ratios.items()
    )
    return WorkloadTiming(
        shape=SHAPE,
        candidate=Timing(
            n=120, median_ns=median_ns, p10_ns=median_ns, p90_ns=median_ns, mad_ns=1.0, method="launch_plan"
        ),
        speedups=speedups,
        control=Interval(ratio=1.0, low=0.999, high=1.001),
        harness_ns=0.0,
        floor_ns=median_ns * 0.36,
        floor_fraction=0.36,
        process_pairs=5,
        rounds=24,
        samples_sha256=digest("samples"),
    )


def measurement(
    ratios: dict[BaselineKind, tuple[float, float, float]] | None = None,
    *,
    gpu: str = "h200",
    ended: Withdrawn | None = None,
    no_verdict: str | None = None,
) -> Measurement:
    """One promoted kernel's measurement: `triton_rmsnorm_<gpu>_bf16_b16_h4096_v1`, 1.291x over compile."""
    found: dict[BaselineKind, tuple[float, float, float]] = ratios or {
        "eager": (12.0935, 12.0667, 12.1204),
        "compile": (1.2912, 1.2877, 1.2947),
        "vendor": (3.7648, 3.6182, 3.9172),
    }
    return Measurement(
        seq=SEQ,
        event_type="BenchmarkRecorded",
        task=task(gpu=gpu),
        timing=timing(found),
        environment=environment(gpu),
        environment_seq=7,
        verified=None,
        verified_seq=9,
        promoted=None if no_verdict else PROMOTIONS[gpu],
        promoted_seq=None if no_verdict else PROMOTED_SEQ,
        ended=ended,
        no_verdict=no_verdict,
    )


def evidence(*measurements: Measurement) -> ClaimEvidence:
    return ClaimEvidence(measurements or (measurement(),), {}, frozenset({7, 9, SEQ, PROMOTED_SEQ}))


def checked(page: str, found: ClaimEvidence | None = None, files: dict[str, str] | None = None) -> PageReport:
    return check_page("page.md", page, found or evidence(), (files or {}).get)


def problems(page: str, found: ClaimEvidence | None = None, files: dict[str, str] | None = None) -> set[str]:
    """Everything that is wrong with a page."""
    report = checked(page, found, files)
    return {fault.problem for one in report.flagged for fault in one.faults}


KINDS = (
    *("eager", "compile", "vendor", "promoted"),
    *("contender:torch.max_autotune@2.11.0", "contender:liger.softmax@0.5.2+cu12"),
)


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    """A kernel with some baselines, each with some interval, narrow or wide."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, unique=True))
    ratios = {}
    for kind in kinds:
        ratio = draw(st.floats(0.05, 200.0))
        below, above = draw(st.floats(1e-5, 0.2)), draw(st.floats(1e-5, 0.2))
        ratios[kind] = (ratio, ratio * (1 - below), ratio * (1 + above))
    # the strategy draws kinds as text; each is one of the literals
    return measurement(ratios, gpu=draw(st.sampled_from(["h200", "rtx4070"])))  # type: ignore[arg-type]
