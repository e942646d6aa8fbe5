"""Starts a trusted guest that holds a plan's device code and none of the candidate's host code.

It runs behind the same wall, since the driver reads untrusted device code in it.
"""

from collections.abc import Iterator, Mapping, Sequence
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
"""Function of a launcher: the plan itself."""


def artifact_files(captured: Captured) -> tuple[ArtifactFile, ...]:
    """Return a plan as the files kept with its candidate: the plan and its device code."""
    return (ArtifactFile(PLAN_FILE, orjson.dumps(captured.plan.model_dump(mode="json"))), *captured.cubins)


def kept_plan(files: tuple[ArtifactFile, ...]) -> Captured | None:
    """Return the plan among a candidate's built files; None if there is none."""
    named = {file.name: file for file in files}
    if PLAN_FILE not in named:
        return None
    plan = LaunchPlan.model_validate_json(named[PLAN_FILE].content)
    return Captured(plan, tuple(named[name] for name in sorted(plan.cubins)))


def launcher_files(job: Job, captured: Captured) -> Mapping[str, bytes]:
    """Return the plan in the launcher's form, for the job's shape, and the device code."""
    plan = captured.plan
    outputs = [
        {"sizes": spec.sizes(job.shape), "dtype": TORCH_NAMES[spec.element_type(job.dtype)]}
        for spec in job.operation.returned
    ]
    launcher_plan = {
        "steps": [_launcher_step(step.model_dump(mode="json")) for step in plan.steps],
        "workspaces": plan.workspaces,
        "scalars": plan.scalars,
        "inputs": [spec.sizes(job.shape) for spec in job.operation.inputs],
        "outputs": outputs,
    }
    return {PLAN_FILE: orjson.dumps(launcher_plan), **{file.name: file.content for file in captured.cubins}}


def launchers_files(job: Job, plans: Sequence[Captured]) -> tuple[dict[str, bytes], tuple[GuestFunction, ...]]:
    """Return several plans for one launcher: all files under names of their own, and a function for each plan."""
    files: dict[str, bytes] = {}
    for place, captured in enumerate(plans):
        own = {name: f"p{place:02}-{name}" for name in (PLAN_FILE, *(file.name for file in captured.cubins))}
        for name, content in launcher_files(job, captured).items():
            files[own[name]] = _renamed(content, own) if name == PLAN_FILE else content
    return files, tuple(
        GuestFunction(f"p{place:02}-{PLAN_FILE}", "launch", wrap="plan") for place in range(len(plans))
    )


def _renamed(plan: bytes, names: Mapping[str, str]) -> bytes:
    """Return a plan in the launcher's form with other names for its device code."""
    document = orjson.loads(plan)
    for step in document["steps"]:
        if "cubin" in step:
            step["cubin"] = names[step["cubin"]]
    return orjson.dumps(document)


def _launcher_step(step: dict[str, object]) -> dict[str, object]:
    """Return one step with its places as short lists."""
    for key in ("to", "source"):
        if key in step:
            step[key] = _short(step[key])
    arguments: list[dict[str, list[dict[str, object]]]] = step.get("arguments", [])  # type: ignore[assignment]  # dumped above
    for argument in arguments:
        pointers = argument.pop("pointers")
        argument["references"] = [[pointer["at"], *_short(pointer["place"])] for pointer in pointers]  # type: ignore[misc]  # dumped above
    return step


def _short(place: object) -> list[object]:
    parsed = Place.model_validate(place)
    return [parsed.to, parsed.index, parsed.offset_bytes]


@contextmanager
def launched(job: Job, captured: Captured, limits: Limits) -> Iterator[LoadedKernel | Failed]:
    """Start a launcher that has loaded the plan, and is asked like any candidate; yield why if it couldn't."""
    stage = Stage(trusted_program(job, launcher_files(job, captured)), job.isolation)
    try:
        with loaded(job, stage, limits, LAUNCH, label="launcher") as kernel:
            yield kernel
    finally:
        stage.remove()
