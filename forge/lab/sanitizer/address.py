"""Does it stay in its memory where no gate checks: beside its own buffers, on its stack, in freed memory?

A second build with AddressSanitizer (gcc and clang, `-fsanitize=address`) runs in a separate guest, where torch's
tensors lie between red zones too. It finds mistakes, not malice: code that detects the tool may behave well.
ThreadSanitizer isn't used: the OpenMP runtime isn't built for it, and it reports honest parallel loops as races.
"""

import dataclasses
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.calls import artifact
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.job import Job
from forge.lab.sanitizer.shapes import watched_shapes
from forge.sandbox.reply import Refused

COMPILER_FLAGS = (
    *("-fsanitize=address", "-fno-omit-frame-pointer", "-g1"),
    # these answer no to a source that asks whether the tool is there, or asks to be left out
    *("-U__SANITIZE_ADDRESS__", "-Dno_sanitize_address=unused", "-D__no_sanitize_address__=unused"),
    *("-Dno_sanitize(...)=unused", "-D__no_sanitize__(...)=unused"),
)
_OPTIONS = (
    "detect_leaks=0",  # it would trace the process, and Python keeps its memory until the end
    "alloc_dealloc_mismatch=0",
    "allocator_may_return_null=1",  # so that a lack of memory is a MemoryError, as without the tool
    "quarantine_size_mb=64",
    "detect_odr_violation=0",
)
REPORT = "ERROR: AddressSanitizer: "
"""Beginning of the line in which AddressSanitizer reports an error."""
THRESHOLD = "no access outside what it was given or allocated"
"""Words for what the question `sanitizer` allows."""


@cache
def environment() -> Mapping[str, str]:
    """Return the variables of a guest that loads files built with `COMPILER_FLAGS`; raise EnvironmentUnfit."""
    libraries = []
    for name in (
        "libasan.so",
        "libstdc++.so.6",
    ):  # the sanitizer wraps functions of the second: it must be there first
        found = subprocess.run(
            ["/usr/bin/env", "g++", f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
        path = Path(found.stdout.strip())
        if not path.is_absolute():
            raise EnvironmentUnfit(
                f"the compiler has no {name}: C++ candidates are run once with AddressSanitizer",
                hint="install the sanitizer's runtime, libasan, for this g++",
            )
        libraries.append(str(path.resolve()))
    return {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": ":".join(_OPTIONS)}


def examine(job: Job) -> Finding:
    """Build once more, and call that build at the public shape and at odd ones; outputs are judged as usual."""
    # building a torch extension also loads it, so the builder needs the tool
    watched = environment() if job.metadata.cpp is None else None
    built = artifact.build_artifact(job, extra_flags=COMPILER_FLAGS, environment=watched)
    if isinstance(built, Refused):
        reason = Reason(code=built.reason.code, message=f"with AddressSanitizer: {built.reason.message}")
        return Failed(
            reason=reason, observed=reason.message, threshold="it builds with AddressSanitizer", log=built.log
        )
    files = artifact.staged_files(job, built.files)
    limits = job.limits(job.policy.verify_limit_s, shadow=True)
    with staged(job, files, environment()) as stage, loaded(job, stage, limits, label="sanitizer") as kernel:
        return _with_report(kernel) if isinstance(kernel, Failed) else _ask(kernel)


def _ask(kernel: LoadedKernel) -> Finding:
    shapes = watched_shapes(kernel)
    for shape in shapes:
        checked = kernel.check([kernel.case(shape)])
        if isinstance(checked, Failed):
            return _with_report(checked)
    return Passed(observed=f"AddressSanitizer silent at {len(shapes)} shapes", threshold=THRESHOLD)


def _with_report(failed: Failed) -> Failed:
    """Return the refusal with the report's text, if the log has one.

    A candidate can write the log, but is refused anyway.
    """
    said = next((line.partition(REPORT)[2] for line in failed.log.splitlines() if REPORT in line), None)
    if said is None:
        return failed
    kind = said.split(" ")[0][:60]
    message = f"AddressSanitizer ended it: {kind}; the log has its report"
    return dataclasses.replace(
        failed, reason=Reason(code="OUT_OF_BOUNDS", message=message), observed=kind, threshold=THRESHOLD
    )
