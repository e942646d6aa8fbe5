"""Doubts about a kernel, from programs that run it."""

from typing import Annotated

from pydantic import Field

from forge.domain.digest import Digest
from forge.domain.task import Name
from forge.domain.tensors import Shape
from forge.events.fact import Fact


class KernelDoubted(Fact):
    """A program that adopted a kernel reported a wrong answer. The report is a claim, so it decides nothing."""

    kernel_id: str
    family: str
    shape: Shape
    output: Name
    """Output whose value differed from the fallback's."""
    excess: Annotated[float, Field(ge=0)] | None
    """Largest difference over the allowed one; None if it is no number, or the sizes differed."""
    generation: Digest
    """Digest of the snapshot that the program decided by."""
    report_sha256: Digest
    """Digest of the stored report: scalars, and digests of the operands."""
