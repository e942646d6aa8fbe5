"""What a candidate costs from submission to decision, the first of a process and a later one: see measurement.py."""

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forge.app.machine.ceilings import calibrated
from forge.app.machine.chosen_executor import executor_of
from forge.app.phases import phases
from forge.app.tasks.create import create_task
from forge.app.workspace import Workspace
from forge.domain.device import Device
from forge.errors import EnvironmentUnfit
from forge.events import BenchmarkRecorded, CandidateVerified, Event
from forge.pipeline.create import TaskRequest
from forge.platforms.cuda import gpu_facts
from forge.platforms.nvml import sample

Json = dict[str, Any]  # Any: a JSON document


def costs(folder: Path, device: Device, *, every_s: float) -> Json:
    """The example in `folder` twice, each in a workspace of its own; calibration is made once and told apart."""
    facts = gpu_facts(device.uuid)
    if facts is None:
        raise EnvironmentUnfit("the driver says nothing of this GPU")
    request = TaskRequest(
        op="softmax", language="triton", gpu=facts.slug, dtype="bf16", shape="batch=4096,hidden_size=4096"
    )
    answer: Json = {"example": folder.name, "shape": "4096x4096"}
    for name in ("cold", "warm"):
        with (
            tempfile.TemporaryDirectory() as home,
            Workspace.create(Path(home), origin="forge benchmark") as workspace,
        ):
            began_s = time.monotonic()
            executor = executor_of(workspace)
            calibrated(workspace, executor, executor.site(workspace.policy).environment)
            calibration_s = time.monotonic() - began_s
            answer[name] = {"calibration_s": calibration_s, **_candidate(workspace, request, folder, device, every_s)}
    answer["candidates_per_gpu_hour"] = 3600 / answer["warm"]["total_s"]
    return answer


def _candidate(workspace: Workspace, request: TaskRequest, folder: Path, device: Device, every_s: float) -> Json:
    run = create_task(workspace, request).run_id
    seconds: dict[str, float] = {}
    steps: list[list[Any]] = []
    decided: Event | None = None
    with _busy(device, every_s) as busy:
        for name in ("submit", "verify", "bench", "promote"):
            began_s = time.monotonic()
            steps.append([name, began_s])
            decided = _phase(workspace, name, run, folder, steps)
            seconds[name] = time.monotonic() - began_s
            if (name == "verify" and not isinstance(decided, CandidateVerified)) or (
                name == "bench" and not isinstance(decided, BenchmarkRecorded)
            ):
                break
    assert decided is not None
    reason = getattr(decided, "reason", None)
    return {
        "seconds": seconds,
        "total_s": sum(seconds.values()),
        "steps": _durations(steps),
        "gpu_busy_s": busy[0],
        "decision": decided.TYPE,
        "reason": reason.model_dump(mode="json") if reason is not None else None,
    }


def _phase(workspace: Workspace, name: str, run: str, folder: Path, steps: list[list[Any]]) -> Event:
    state = workspace.find_run(run)

    def progress(step: str) -> None:
        steps.append([f"{name}: {step}", time.monotonic()])
        print(f"{steps[-1][1] - steps[0][1]:7.1f} s  {name}: {step}", file=sys.stderr, flush=True)

    if name == "submit":
        return phases.submit_candidate(workspace, state, folder, author="forge benchmark")
    if name == "verify":
        return phases.verify_candidate(workspace, state, progress=progress)
    if name == "bench":
        return phases.benchmark_candidate(workspace, state, progress=progress)
    return phases.promote_candidate(workspace, state)


def _durations(steps: list[list[Any]]) -> list[list[Any]]:
    """Each step with its seconds, the last one until now; steps that run side by side share theirs."""
    ends = [began_s for _, began_s in steps[1:]] + [time.monotonic()]
    return [[name, round(end - began_s, 3)] for (name, began_s), end in zip(steps, ends, strict=True)]


@contextmanager
def _busy(device: Device, every_s: float) -> Iterator[list[float]]:
    """Seconds in which some kernel ran, by the driver's own utilisation; nothing is known without NVML."""
    total, ended = [0.0], threading.Event()

    def watch() -> None:
        last_s = time.monotonic()
        while not ended.wait(every_s):
            state, now_s = sample(device), time.monotonic()
            total[0] += (state.utilisation or 0.0) * (now_s - last_s) if state else 0.0
            last_s = now_s

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield total
    finally:
        ended.set()
        watching.join()
