"""Tries one precision lower at operands that are mostly zero, if it was right at the file's own values.

In a sum of thousands of positive terms the rounding errors of operands cancel, and TF32 is as good as fp32. In a sum
of a few terms it isn't. The gates ask such operands too, so what is refused there is refused.
"""

from __future__ import annotations

from forge.domain.evidence import Admission
from forge.domain.input_kind import InputKind
from forge.domain.policy import Policy
from forge.lab.judge.lower_precision import coarse
from forge.lab.reference.admission import ONE_PRECISION_LOWER, right_answer
from forge.lab.reference.answers import Answers
from forge.lab.reference.binding import bound
from forge.lab.reference.drawing import Drawing
from forge.operations.own import own_operation
from forge.sandbox.reply import Refused

FEW_TERMS: InputKind = "sparse"
"""Kind of values of which 19 in 20 are zero."""
DRAWS = 2
"""Number of draws of the kind FEW_TERMS. Chosen; each costs four calls of the reference."""


def with_precision(admission: Admission, answers: Answers, source: bytes, seed: int, policy: Policy) -> Admission:
    """Return the admission without the lower precisions that are refused at operands with few nonzero values."""
    contract = answers.contract
    operation = bound(own_operation(contract, source), answers, policy)
    names = {f"{spec.name}: {ONE_PRECISION_LOWER}": place for place, spec in enumerate(operation.outputs)}
    left = {name: names[name] for name in admission.survivors if name in names}
    if not left or FEW_TERMS not in contract.kinds:
        return admission
    refused: set[str] = set()
    for number in range(DRAWS):
        inputs = Drawing(answers)(contract.shape, FEW_TERMS, seed + 61 + number)
        lower = answers.asked("module", tuple(coarse(one, contract.dtype) for one in inputs), contract.shape)
        if isinstance(lower, Refused):
            continue
        right, expected = operation.reference(*inputs), operation.oracle(*inputs)
        assert isinstance(right, tuple)
        for name, place in left.items():
            spec = operation.outputs[place]
            if not right_answer(lower[place], expected[place], right[place], spec, contract.dtype, policy):
                refused.add(name)
    return admission.model_copy(
        update={
            "killed": admission.killed + len(refused),
            "survivors": tuple(name for name in admission.survivors if name not in refused),
        }
    )
