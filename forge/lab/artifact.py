"""A candidate's sources made into what its guests load, in a sandbox of its own."""

from collections.abc import Mapping

from forge.domain.verdict import Reason
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.job import Job
from forge.lab.sources import cpp_source
from forge.sandbox.build import Built, build
from forge.sandbox.reply import ArtifactFile, Refused
from forge.sandbox.stage import Program, Stage

THRESHOLD = "at least one shared object"
_NOTHING_BUILT = (
    "the build made no shared object: importing kernel.py is all that a build does, "
    "so call load_inline at module level, not on first use"
)


def build_artifact(
    job: Job, *, extra_flags: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> Built | Refused:
    """Run the builder on the candidate's sources, with flags of ours after its own, and in variables of ours."""
    metadata = job.metadata
    source = cpp_source(job.files["kernel.py"].decode(), metadata.cpp.source) if metadata.cpp else None
    stage = Stage(
        Program(language=job.language, files=job.files, environment=environment or {}, warm=True), job.isolation
    )
    try:
        flags = (*(metadata.cpp.flags if metadata.cpp else ()), *extra_flags)
        limits = job.limits(job.policy.build_limit_s, shadow=environment is not None)
        return build(stage, cpp_source=source, cpp_flags=flags, limits=limits, threads=job.threads)
    finally:
        stage.remove()


def finding(built: Built | Refused) -> Finding:
    """What the build came to, as a gate's finding."""
    if isinstance(built, Refused):
        return Failed(reason=built.reason, observed=built.reason.message, threshold=THRESHOLD, log=built.log)
    if not built.files:
        reason = Reason(code="COMPILE_ERROR", message=_NOTHING_BUILT)
        return Failed(reason=reason, observed="none", threshold=THRESHOLD)
    names = ", ".join(f"{file.name} ({len(file.content)} bytes)" for file in built.files)
    return Passed(observed=names, threshold=THRESHOLD)


def staged_files(job: Job, artifact: tuple[ArtifactFile, ...]) -> dict[str, bytes]:
    """The candidate's files with what was built from them."""
    return {**job.files, **{file.name: file.content for file in artifact}}
