"""What an operation is, as a program needs it that calls promoted kernels in place of its own."""

from forge.domain.digest import Digest
from forge.domain.task import Name
from forge.events.fact import Fact


class OperationDescribed(Fact):
    """The operands and the reference of an operation were recorded, so that its kernels can be adopted.

    The newest one of an operation counts. The registry publishes both files under `ops/`.
    """

    op: Name
    description_sha256: Digest
    """Digest of the description: operands, scalars, outputs, what is written in place."""
    reference_sha256: Digest
    """Digest of the reference's source text: Forge's own, or for an own operation its owner's frozen file."""
