"""Builds a candidate's sources in a separate sandbox into the files that its guests load."""

import dataclasses
from collections.abc import Mapping

from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.device.toolkit import build_environment, gpu_code
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.job import Job
from forge.lab.sources.screen import source_text
from forge.sandbox.build import Built, Recipe, build
from forge.sandbox.cubin import read_cubin
from forge.sandbox.limits import Limits
from forge.sandbox.reply import ArtifactFile, Refused
from forge.sandbox.stage import Program, Stage

TEXT_SHARE = 0.2
"""Share of the policy's `build_limit_s` for text that is compiled alone: 48 of 240 processor seconds. The longest
measured build of text took 11 (cub and thrust, by nvcc); a kernel.py that builds with torch's headers took 126."""
THRESHOLD = "at least one shared object"
"""Words for what a build must give."""
_NOTHING_BUILT = (
    "the build made no shared object: importing kernel.py is all that a build does, "
    "so call load_inline at module level, not on first use"
)
"""Reason for a build without a shared object, with what to change."""


def build_artifact(
    job: Job, *, extra_flags: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> Built | Refused:
    """Run the builder on the candidate's sources, with the host's extra flags after its own and the host's variables.

    Raise EnvironmentUnfit if this machine has no compiler for them, or if the build doesn't end in time.
    """
    described, on_gpu = job.metadata.build, job.language.device_code
    variables = {**(build_environment(job.arch) if on_gpu else {}), **(environment or {})}
    recipe = Recipe(
        source=source_text(job.files["kernel.py"].decode(), described.source) if described else None,
        flags=(*(described.flags if described else ()), *extra_flags),
        code=gpu_code(job.arch) if on_gpu else "",
    )
    # nvcc needs no torch: only a build that imports kernel.py gains from a fork of a process that has loaded it
    warm = not (on_gpu and described)
    program = Program(
        language=job.language, files=job.files, environment=variables, warm=warm, allowance=job.allowance
    )
    stage = Stage(program, job.isolation)
    try:
        limits = _limits(job, shadow=environment is not None)
        built = build(stage, recipe, limits=limits, threads=job.threads)
    finally:
        stage.remove()
    if isinstance(built, Refused) and built.from_load:
        raise EnvironmentUnfit(
            f"no verdict on the build, which had {limits.total_cpu_s:g} s of processor time: {built.reason.message}",
            hint="verify again when less runs here, or raise build_limit_s in policy.toml",
        )
    return _with_device_code(built, recipe.code) if on_gpu and isinstance(built, Built) else built


def _limits(job: Job, *, shadow: bool) -> Limits:
    """Return the build's limits.

    All its processes together have the seconds that elsewhere one thread has.
    """
    cpu_s = job.policy.build_limit_s * (TEXT_SHARE if job.metadata.build else 1)
    return dataclasses.replace(job.limits(cpu_s, shadow=shadow), total_cpu_s=cpu_s)


def _with_device_code(built: Built, code: str) -> Built | Refused:
    """Return the shared objects and the cubins with kernels; refuse if no cubin is for the target."""
    kept, archs = [], set()
    for file in built.files:
        if not file.name.endswith(".cubin"):
            kept.append(file)
            continue
        try:
            cubin = read_cubin(file.content)
        except ValueError as error:
            return Refused(
                Reason(code="COMPILE_ERROR", message=f"the build made a cubin that can't be read: {error}")
            )
        if cubin.kernels:
            kept.append(file)
            archs.add(cubin.arch)
    if kept and code not in archs:
        made = f"code for {', '.join(sorted(archs))}" if archs else "no kernel"
        return Refused(Reason(code="COMPILE_ERROR", message=f"the build made {made}: expected kernels for {code}"))
    return Built(tuple(kept))


def finding(built: Built | Refused) -> Finding:
    """Return the build's result as a gate's finding."""
    if isinstance(built, Refused):
        return Failed(reason=built.reason, observed=built.reason.message, threshold=THRESHOLD, log=built.log)
    if not any(file.name.endswith(".so") for file in built.files):
        reason = Reason(code="COMPILE_ERROR", message=_NOTHING_BUILT)
        return Failed(reason=reason, observed="none", threshold=THRESHOLD)
    names = ", ".join(f"{file.name} ({len(file.content)} bytes)" for file in built.files)
    return Passed(observed=names, threshold=THRESHOLD)


def staged_files(job: Job, artifact: tuple[ArtifactFile, ...]) -> dict[str, bytes]:
    """Return the candidate's files with the built ones, and with those that its operation puts beside them."""
    return {**job.files, **{file.name: file.content for file in artifact}, **job.definition.files}
