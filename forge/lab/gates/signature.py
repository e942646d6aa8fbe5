"""Does one call at the public shape return what the signature says: the number of tensors, their form, contiguous?"""

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate


def examine(kernel: LoadedKernel) -> Finding:
    """Make one call; the guest's harness refuses any other form before it copies a byte."""
    checked = kernel.check([kernel.case(kernel.shape)])
    if isinstance(checked, Failed):
        return checked
    described = ", ".join(
        f"{spec.name} {spec.element_type(kernel.dtype)}{list(spec.sizes(kernel.shape))}"
        for spec in kernel.operation.outputs
    )
    return Passed(observed=described, threshold=kernel.operation.signature)


SIGNATURE = Gate(name="signature", examine=examine, one_call_shows_it=True, runs_early=True)
