"""Has a profiler measure a verified candidate, and records the figures. No verdict uses them."""

from collections.abc import Sequence
from typing import assert_never

import orjson

from forge.domain.digest import sha256
from forge.domain.profile import CodeFacts, KernelProfile, OperatorTime
from forge.events import ProfileCaptured
from forge.executor import Executor, ProfilerTool
from forge.lab.job import Progress
from forge.pipeline.job import RecordedCandidate, job_of
from forge.pipeline.outcome import Outcome
from forge.sandbox.reply import ArtifactFile

KINDS: dict[ProfilerTool, str] = {"ncu": "counters", "torch": "operators", "cuobjdump": "code"}


def profile(
    evidence: RecordedCandidate,
    executor: Executor,
    artifact: tuple[ArtifactFile, ...],
    *,
    tool: ProfilerTool,
    progress: Progress,
) -> Outcome:
    """Run the tool and return ProfileCaptured and the full report; raise EnvironmentUnfit if the tool can't run."""
    match tool:
        case "ncu":
            counters = executor.counters(job_of(evidence), artifact, progress=progress)
            metrics = _numbers(counters.kernels)
            document = counters.model_dump(mode="json")
        case "torch":
            operators = executor.operators(job_of(evidence), artifact, progress=progress)
            metrics = _numbers(operators)
            document = {"operators": [one.model_dump(mode="json") for one in operators]}
        case "cuobjdump":
            code = executor.machine_code(artifact)
            metrics = _numbers(code)
            document = {"code": [one.model_dump(mode="json") for one in code]}
        case _:
            assert_never(tool)
    raw = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    event = ProfileCaptured(
        run_id=evidence.run_id,
        candidate=evidence.submitted.candidate,
        tool=tool,
        tool_version=executor.tool_version(tool),
        kind=KINDS[tool],
        metrics=metrics,
        raw_sha256=sha256(raw),
        env_sha256=evidence.environment.env_sha256,
    )
    return Outcome(events=(event,), files={f"profile_{tool}.json": raw}, blobs=(raw,))


def _numbers(kernels: Sequence[KernelProfile | OperatorTime | CodeFacts]) -> dict[str, float]:
    """Return `<position>.<field>` -> value for each number of the tool. The report also has names and texts."""
    return {
        f"{place}.{name}": float(value)
        for place, kernel in enumerate(kernels)
        for name, value in kernel.model_dump(mode="json").items()
        if isinstance(value, int | float)
    }
