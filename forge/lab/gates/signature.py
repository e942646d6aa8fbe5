"""Does one call at the public shape return what the signature says: the number of tensors, their form, contiguous?"""

from dataclasses import replace

from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate

ABOUT_FORM = frozenset({"INCORRECT_SHAPE", "INCORRECT_DTYPE"})
"""Reason codes of outputs in another form, to which this gate adds the expected one. Other gates also ask at shapes
that an author may not learn."""


def examine(kernel: LoadedKernel) -> Finding:
    """Make one call; the guest's harness refuses any other form before it copies a byte."""
    checked = kernel.check([kernel.case(kernel.shape)])
    if isinstance(checked, Failed) and checked.reason.code not in ABOUT_FORM:
        return checked
    described = ", ".join(
        f"{spec.name} {spec.element_type(kernel.dtype)}{list(spec.sizes(kernel.shape))}"
        for spec in kernel.operation.outputs
    )
    if isinstance(checked, Failed):
        message = f"{checked.reason.message}; expected {described}"
        return replace(checked, reason=Reason(code=checked.reason.code, message=message), threshold=described)
    return Passed(observed=described, threshold=kernel.operation.signature)


SIGNATURE = Gate(name="signature", examine=examine, one_call_shows_it=True, runs_early=True, runs_alone=True)
