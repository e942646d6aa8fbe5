"""Does one call at the public shape return what the signature says: how many tensors, which form, contiguous?"""

from forge.lab.calls.loaded_candidate import Probe
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate


def examine(probe: Probe) -> Finding:
    """Make one call; the guest's harness refuses any other form before it copies a byte."""
    checked = probe.check([probe.case(probe.shape)])
    if isinstance(checked, Failed):
        return checked
    described = ", ".join(
        f"{spec.name} {spec.element_type(probe.dtype)}{list(spec.sizes(probe.shape))}"
        for spec in probe.operation.outputs
    )
    return Passed(observed=described, threshold=probe.operation.signature)


SIGNATURE = Gate(name="signature", examine=examine)
