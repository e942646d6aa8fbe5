"""Tasks, timings and cases to judge: plain values, each met by every rule until a test changes one."""

import random
from typing import Any

from forge.domain.digest import digest_of, sha256
from forge.domain.environment import Environment
from forge.domain.evidence import (
    Confirmation,
    GateResult,
    Interval,
    Isolation,
    Residency,
    ResidentTiming,
    Speedup,
    Timing,
    WorkloadErrors,
    WorkloadTiming,
)
from forge.domain.policy import Policy, TimingAuthority
from forge.domain.task import Task
from forge.events import BenchmarkRecorded, CandidateSubmitted, CandidateVerified, Event, Recorded
from forge.operations import OPERATIONS
from forge.pipeline.create import TaskRequest, create
from forge.pipeline.promote import PromotionEvidence
from tests.projections.values import candidate, environment

DIGEST = sha256(b"a candidate")
WALL = Isolation(level="namespaces", parts=("user_ns",), missing=())
POLICY = Policy(baselines=("eager",), minimum_speedup=1.1, regimes=("cold", "resident"))


def request(**changes: Any) -> TaskRequest:
    wanted = {"op": "rmsnorm", "language": "torch", "gpu": "cpu", "dtype": "fp32", **changes}
    return TaskRequest(**{"shape": shape_for(wanted["op"]), **wanted})


def shape_for(op: str) -> str:
    """Four rows of 64: `batch=4,hidden_size=64` for most; an operation that isn't there has that shape too."""
    operation = OPERATIONS.get(op, OPERATIONS["rmsnorm"])
    sizes = {**dict.fromkeys(operation.axes, 2), operation.row_axis: 4, operation.reduced_axis: 64}
    return ",".join(f"{axis}={size}" for axis, size in sizes.items())


def made(policy: Policy = POLICY, **changes: Any) -> Task:
    task, _ = create(request(**changes), policy=policy, rng=random.Random(1))
    return task


def taken(*, method: TimingAuthority = "host_slope", p90_ns: float = 1100.0) -> Timing:
    return Timing(n=100, median_ns=1000.0, p10_ns=900.0, p90_ns=p90_ns, mad_ns=10.0, method=method)


def over_eager(*, ratio: float, low: float, high: float, pairs_lost: int) -> tuple[Speedup, ...]:
    interval = Interval(ratio=ratio, low=low, high=high)
    return (Speedup(baseline="eager", baseline_median_ns=1500.0, interval=interval, pairs_lost=pairs_lost),)


def confirmed(
    *,
    low: float = 1.46,
    control: tuple[float, float] = (0.99, 1.01),
    pairs_lost: int = 0,
    method: TimingAuthority = "host_slope",
    p90_ns: float = 1100.0,
    process_pairs: int = 5,
) -> Confirmation:
    """The winner measured once more."""
    return Confirmation(
        candidate=taken(method=method, p90_ns=p90_ns).model_copy(update={"median_ns": 1010.0}),
        speedups=over_eager(ratio=1.1 * low, low=low, high=1.2 * low, pairs_lost=pairs_lost),
        control=Interval(ratio=1.0, low=control[0], high=control[1]),
        process_pairs=process_pairs,
    )


def timing(
    *,
    ratio: float = 1.5,
    low: float = 1.4,
    high: float = 1.6,
    control: tuple[float, float] = (0.99, 1.01),
    pairs_lost: int = 0,
    p90_ns: float = 1100.0,
    floor_ns: float = 500.0,
    **changes: Any,
) -> WorkloadTiming:
    facts = {
        "shape": {"batch": 4, "hidden_size": 64},
        "candidate": taken(p90_ns=p90_ns),
        "speedups": over_eager(ratio=ratio, low=low, high=high, pairs_lost=pairs_lost),
        "control": Interval(ratio=1.0, low=control[0], high=control[1]),
        "harness_ns": 10.0,
        "floor_ns": floor_ns,
        "floor_fraction": 0.5,
        "process_pairs": 5,
        "rounds": 20,
        "samples_sha256": DIGEST,
        "confirmation": confirmed(),
        "residency": Residency(cache_bytes=None, operand_bytes=2048, timing=None, why_not="the cache isn't known"),
    }
    return WorkloadTiming.model_validate({**facts, **changes})


def in_cache(
    *, low: float = 1.4, control: tuple[float, float] = (0.99, 1.01), lost: int = 0, again: Confirmation | None = None
) -> Residency:
    resident = ResidentTiming(
        candidate=taken(),
        speedups=over_eager(ratio=1.1 * low, low=low, high=1.2 * low, pairs_lost=lost),
        control=Interval(ratio=1.0, low=control[0], high=control[1]),
        floor_ns=100.0,
        process_pairs=5,
        rounds=20,
        confirmation=again or confirmed(),
    )
    return Residency(cache_bytes=2**25, operand_bytes=2048, timing=resident, why_not=None)


def recorded(event: Event, seq: int) -> Recorded[Any]:
    return Recorded(
        seq=seq,
        event_id=f"event-{seq}",
        stream=event.stream(),
        stream_version=1,
        recorded_at="2026-01-02T03:04:05.000000Z",
        actor="system:gate",
        correlation_id="r",
        causation_id=None,
        event_hash=DIGEST,
        event=event,
    )


def case(
    *, verified: dict[str, Any] | None = None, benchmark: dict[str, Any] | None = None, **changes: Any
) -> PromotionEvidence:
    """A case that is promoted, but for what is changed."""
    task = made()
    files = candidate("a", language="torch")
    machine: Environment = environment("cpu")
    ids = {"run_id": "r", "task_id": task.task_id, "candidate": files.sha256, "attempt": 1}
    evidence = {"isolation": WALL, "env_sha256": machine.env_sha256, "policy_sha256": digest_of(POLICY)}
    judged = CandidateVerified.model_validate(
        {
            **ids,
            **evidence,
            "artifact_sha256": None,
            "workloads": (WorkloadErrors(shape=task.shape, inputs="normal", max_relative_error=0.0, bound_used=0.1),),
            "shapes_verified": (task.shape,),
            "gates": (GateResult(name="numerics", verdict="passed", observed="0.1", threshold="1"),),
            "seeds_sha256": DIGEST,
            "simulated": False,
            "report_sha256": DIGEST,
            **(verified or {}),
        }
    )
    timed = BenchmarkRecorded.model_validate(
        {
            **ids,
            **evidence,
            "workloads": (timing(),),
            "baseline_used": "eager",
            "baseline_seqs": (11,),
            "verified_seq": 10,
            "report_sha256": DIGEST,
            **(benchmark or {}),
        }
    )
    submitted = CandidateSubmitted(
        run_id="r", task_id=task.task_id, candidate=files.sha256, files=files, author="ada"
    )
    facts: dict[str, Any] = {
        "run_id": "r",
        "task": task,
        "submitted": submitted,
        "verified": recorded(judged, 10),
        "benchmark": recorded(timed, 12),
        "benchmark_invalidated": False,
        "measured_beside": None,
        "incumbent": None,
        "environment": machine,
        "skills": ("patterns.test-plan",),
        "policy": POLICY,
    }
    return PromotionEvidence(**{**facts, **changes})
