"""Does a GPU kernel stay in its tensors, initialise what it reads, and order the accesses of its threads?

NVIDIA's compute-sanitizer runs the guest once for each of three tools. memcheck finds accesses outside an allocation,
racecheck hazards in shared memory, and initcheck reads of unwritten global memory. Torch's caching allocator is off
there, so that each tensor is an allocation of its own with unmapped space behind it.
"""

import dataclasses
import re
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from forge.domain.verdict import Reason, ReasonCode
from forge.errors import EnvironmentUnfit
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.device.toolkit import PROGRAMS
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.job import Job
from forge.lab.sanitizer.shapes import watched_shapes
from forge.languages import LANGUAGES
from forge.operations import reference_source
from forge.sandbox.reply import ArtifactFile

TOOLS: dict[str, ReasonCode] = {
    "memcheck": "OUT_OF_BOUNDS",
    "racecheck": "NON_DETERMINISTIC",
    "initcheck": "OUT_OF_BOUNDS",
}
"""Reason code of a refusal, by tool; a read of unwritten memory counts as an access outside."""
FOUND_STATUS = 86
"""Exit status with which the tool ends a process after a report; a candidate that ends itself so is refused as
well."""
_OPTIONS = ("--error-exitcode", str(FOUND_STATUS), "--print-limit", "20", "--show-backtrace", "device")
"""Options of compute-sanitizer for each of its tools."""
_REPORT = re.compile(r"^=+ +((?:Invalid|Uninitialized|(?:Error|Warning): Race|Program hit).*)$", re.MULTILINE)
"""Pattern of the first line of a finding."""
_ALLOCATION_ERROR = "cudaErrorMemoryAllocation"
"""Name of the runtime's error for lack of the device's memory, which isn't an access outside."""
_TOOL_OPTIONS: dict[str, tuple[str, ...]] = {"memcheck": ("--padding", str(2**16))}
"""Further options, by tool. The padding leaves space behind each allocation; otherwise an access past a full block
would hit the next one unseen."""
_ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
"""Setting by which torch gives each tensor an allocation of its own, so that its ends are watched."""
THRESHOLD = f"nothing found by {', '.join(TOOLS)}"


@cache
def program() -> str:
    """Return the path of the tool; raise EnvironmentUnfit."""
    found = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=PROGRAMS)
    if found is None:
        raise EnvironmentUnfit(
            "compute-sanitizer isn't on the path: GPU candidates are run once under it",
            hint="install the CUDA toolkit's sanitizer, or set sanitizer = false in policy.toml",
        )
    return str(Path(found).resolve())


def examine(job: Job, artifact: tuple[ArtifactFile, ...] = ()) -> Finding:
    """Run the candidate under all tools at once; a tool's report refuses it if the tool is silent on the reference.

    A reference file may call any library: a tool that reports those calls is left out.
    """
    files = staged_files(job, artifact)
    with ThreadPoolExecutor(len(TOOLS)) as pool:
        found = list(pool.map(lambda tool: _under(tool, job, files), TOOLS))
    silent: list[str] = []
    for tool, first in zip(TOOLS, found, strict=True):
        crashed = first is not None and report(first.log) is None
        # a tool may crash by itself; a candidate's fault happens again
        failed = _under(tool, job, files) if crashed else first
        if failed is None:
            silent.append(tool)
        elif not _finds_fault_with_the_reference(tool, job):
            return failed
    return Passed(
        observed=f"{', '.join(silent) or 'none of the tools that suit the reference'} silent", threshold=THRESHOLD
    )


def _finds_fault_with_the_reference(tool: str, job: Job) -> bool:
    """Return whether the tool reports the reference, as it may if the reference calls libraries.

    Raise EnvironmentUnfit if it reports a reference that calls none.
    """
    reference = dataclasses.replace(
        job,
        language=LANGUAGES["torch"],
        files={"kernel.py": reference_source(job.operation).encode()},
        entry_point=job.definition.reference().entry_point,
    )
    failed = _under(tool, reference, staged_files(reference, ()))
    if failed is not None and not job.definition.allows_libraries:
        raise EnvironmentUnfit(
            f"compute-sanitizer's {tool} fails with the reference on this machine: {failed.reason.message}",
            hint="set sanitizer = false in policy.toml, or repair the tool",
        )
    return failed is not None


def _under(tool: str, job: Job, files: Mapping[str, bytes]) -> Failed | None:
    wrapper = (program(), "--tool", tool, *_TOOL_OPTIONS.get(tool, ()), *_OPTIONS)
    limits = job.limits(job.policy.verify_limit_s, shadow=True)
    with (
        staged(job, files, _ENVIRONMENT, wrapper=wrapper) as stage,
        loaded(job, stage, limits, label="sanitizer") as kernel,
    ):
        if isinstance(kernel, Failed):
            return kernel
        for shape in watched_shapes(kernel):
            checked = kernel.check([kernel.case(shape)])
            if isinstance(checked, Failed):
                return refusal(tool, checked.log) if report(checked.log) else checked
        ended, log = kernel.finish()
    if ended.from_load:
        raise EnvironmentUnfit(f"compute-sanitizer's {tool} didn't end", hint="verify again when less runs here")
    if ended.returncode == 0:
        return None
    return refusal(tool, log)


def report(log: str) -> str | None:
    """Return the tool's first report in the log. A candidate can write the log too, but is refused anyway."""
    found = _REPORT.search(log)
    return found[1][:160] if found else None


def refusal(tool: str, log: str) -> Failed:
    """Return the refusal for a tool's first report; a lack of the device's memory is one of its own."""
    found = report(log) or "see the log"
    code = "OUT_OF_MEMORY" if _ALLOCATION_ERROR in found else TOOLS[tool]
    message = f"compute-sanitizer's {tool} found: {found}"
    return Failed(reason=Reason(code=code, message=message), observed=message, threshold=THRESHOLD, log=log)
