"""Second measurements of kernels in small ledgers."""

from typing import Any

from forge.domain.digest import Digest
from forge.domain.environment import Environment
from forge.domain.evidence import Interval
from forge.domain.replication import Outcome, ReplicatedSpeedup
from forge.domain.verdict import Reason
from forge.events import EnvironmentCaptured, KernelPromoted, ReplicationRecorded
from tests.projections.histories import History
from tests.projections.values import WALL, digest, environment, workload

ANOTHER_HOST = environment().model_copy(update={"host_sha256": digest("another host")})
CONTRADICTS = Reason(code="NOT_REPLICATED", message="1.2x, first 1.5x")


def promotion(history: History, kernel_id: str) -> KernelPromoted:
    found = (one.event for one in history.events if isinstance(one.event, KernelPromoted))
    return next(event for event in found if event.kernel_id == kernel_id)


def compared(first: float = 1.5, second: float = 1.5) -> ReplicatedSpeedup:
    ends = [Interval(ratio=ratio, low=ratio * 0.98, high=ratio * 1.02) for ratio in (first, second)]
    return ReplicatedSpeedup(
        regime="cold",
        baseline="eager",
        first=ends[0],
        first_pairs=5,
        second=ends[1],
        second_pairs=5,
        session_spread=0.02,
        replications=0,
    )


def replicated(
    history: History,
    kernel_id: str,
    *,
    outcome: Outcome = "held",
    on: Environment = ANOTHER_HOST,
    hour: int = 3,
    process: Digest | None = None,
    **changes: Any,
) -> int:
    """Measure a kernel again, by default at once on another host."""
    kernel = promotion(history, kernel_id)
    history.add(
        EnvironmentCaptured(environment=on, env_sha256=on.env_sha256, perf_key=on.perf_key, abi_key=on.abi_key)
    )
    event = ReplicationRecorded.model_validate(
        {
            "kernel_id": kernel_id,
            "family": kernel.family,
            "candidate": kernel.candidate,
            "benchmark_seq": kernel.benchmark_seq,
            "outcome": outcome,
            "reason": None if outcome == "held" else CONTRADICTS,
            "workloads": (workload(kernel.task.shape, median_ns=1000.0, ratio=1.5),),
            "baseline_used": "eager",
            "comparisons": (compared(),),
            "isolation": WALL,
            "process_sha256": process or digest("another process"),
            "env_sha256": on.env_sha256,
            "report_sha256": digest("replication report"),
            "policy_sha256": kernel.policy_sha256,
            **changes,
        }
    )
    return history.add(event, hour=hour)
