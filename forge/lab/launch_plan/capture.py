"""Lets a candidate's guest list one call as a launch plan, and reads the list."""

import math

from forge.domain.plan import NoPlan
from forge.domain.tensors import ITEMSIZE_BYTES, TensorSpec
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.refusal import require_verdict
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.sandbox.plans import Bounds, Captured, PlanError, parse_plan
from forge.sandbox.reply import Refused

THRESHOLD = "one call, listed as launches on its own tensors"
"""Words for what the capture of a launch plan allows."""


def capture(job: Job, kernel: LoadedKernel) -> Captured | NoPlan | Failed:
    """List one call at the public shape, on the operands of the kernel's last call."""
    answer = kernel.capture()
    if isinstance(answer, Refused):
        require_verdict(answer)
        return Failed(reason=answer.reason, observed=answer.reason.message, threshold=THRESHOLD, log=answer.log)
    try:
        return parse_plan(answer, bounds(job))
    except PlanError as error:
        reason = Reason(code="TAMPERING", message=str(error)[:500])
        return Failed(reason=reason, observed=reason.message, threshold=THRESHOLD)


def bounds(job: Job) -> Bounds:
    """Return what a plan's references may reach at the job's shape."""

    def size_bytes(spec: TensorSpec) -> int:
        return math.prod(spec.sizes(job.shape)) * ITEMSIZE_BYTES[spec.element_type(job.dtype)]

    operation = job.operation
    return Bounds(
        inputs=tuple(map(size_bytes, operation.inputs)),
        outputs=tuple(map(size_bytes, operation.returned)),
        scalars=tuple(operation.scalars.values()),
        arch=job.arch or "",
    )
