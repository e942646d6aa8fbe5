"""A guest of our own that holds a plan's device code and none of the candidate's host code.

It stands behind the same wall: the driver reads a stranger's device code in it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import orjson

from forge.domain.plan import LaunchPlan, Place
from forge.domain.tensors import TORCH_NAMES
from forge.lab.calls.load import loaded
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.trusted import trusted_program
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.sandbox.limits import Limits
from forge.sandbox.plans import PLAN_FILE, Captured
from forge.sandbox.reply import ArtifactFile
from forge.sandbox.session import GuestFunction
from forge.sandbox.stage import Stage

LAUNCH = GuestFunction(PLAN_FILE, "launch", wrap="plan")


def artifact_files(captured: Captured) -> tuple[ArtifactFile, ...]:
    """A plan as it is kept with its candidate: itself, and the device code."""
    return (ArtifactFile(PLAN_FILE, orjson.dumps(captured.plan.model_dump(mode="json"))), *captured.cubins)


def kept_plan(files: tuple[ArtifactFile, ...]) -> Captured | None:
    """The plan among a candidate's built files; None where it has none."""
    named = {file.name: file for file in files}
    if PLAN_FILE not in named:
        return None
    plan = LaunchPlan.model_validate_json(named[PLAN_FILE].content)
    return Captured(plan, tuple(named[name] for name in sorted(plan.cubins)))


def launcher_files(job: Job, captured: Captured) -> Mapping[str, bytes]:
    """The plan in the launcher's words, for the job's shape, and the device code."""
    plan = captured.plan
    outputs = [
        {"sizes": spec.sizes(job.shape), "dtype": TORCH_NAMES[spec.element_type(job.dtype)]}
        for spec in job.operation.returned
    ]
    told = {
        "steps": [_told(step.model_dump(mode="json")) for step in plan.steps],
        "workspaces": plan.workspaces,
        "scalars": plan.scalars,
        "inputs": [spec.sizes(job.shape) for spec in job.operation.inputs],
        "outputs": outputs,
    }
    return {PLAN_FILE: orjson.dumps(told), **{file.name: file.content for file in captured.cubins}}


def _told(step: dict[str, object]) -> dict[str, object]:
    """One step with its places as short lists."""
    for key in ("to", "source"):
        if key in step:
            step[key] = _short(step[key])
    arguments: list[dict[str, list[dict[str, object]]]] = step.get("arguments", [])  # type: ignore[assignment]  # dumped above
    for argument in arguments:
        pointers = argument.pop("pointers")
        argument["references"] = [[pointer["at"], *_short(pointer["place"])] for pointer in pointers]  # type: ignore[misc]  # likewise
    return step


def _short(place: object) -> list[object]:
    parsed = Place.model_validate(place)
    return [parsed.to, parsed.index, parsed.offset_bytes]


@contextmanager
def launched(job: Job, captured: Captured, limits: Limits) -> Iterator[LoadedKernel | Failed]:
    """A launcher that has loaded the plan, asked like any candidate; or why it couldn't."""
    stage = Stage(trusted_program(job, launcher_files(job, captured)), job.isolation)
    try:
        with loaded(job, stage, limits, LAUNCH, label="launcher") as kernel:
            yield kernel
    finally:
        stage.remove()
