"""Does the answer follow the question, if the tensors are the same objects and only their contents are new?

A cache needs a key: a pointer, a version, a few sampled elements, sums of blocks, or upper bits. So this gate puts
new contents into the same storage, in this order. First come fresh values, then changes in low bits, a new weight,
and a new scalar. Then two elements of one operand change places within a row, which keeps cheap statistics of the
row. This is done for every operand, weights and positions included. Last comes the first question again. For a
reference file each operand alone is new as well, and elements change places within a whole operand.
"""

import dataclasses

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate

WRONG_NUMBERS = frozenset({"INCORRECT_NUMERICAL", "NON_FINITE"})
"""Reason codes of wrong numbers that aren't an earlier answer. A kernel that keeps a packed weight gives such."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask related questions through the same tensors; the judge recognises an earlier answer."""
    questions = kernel.definition.related(lambda: kernel.case(kernel.shape), kernel.rng)
    for question in questions:
        checked = kernel.check([question])
        if isinstance(checked, Failed):
            usual = checked.reason.code in WRONG_NUMBERS and question.kind == "normal"
            return _wrong_again(checked) if usual else checked
    return Passed(observed=f"{len(questions)} related inputs, no cached answer", threshold="every answer fresh")


def _wrong_again(failed: Failed) -> Failed:
    """Return the refusal with what the author may have overlooked: the gate `signature` got a right answer."""
    message = (
        "right in the first call, wrong with other contents in the same tensors (it keeps something made from an "
        f"operand, a weight too, or is wrong for these numbers): {failed.reason.message}"
    )
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))


REPLAY = Gate(name="replay", examine=examine, runs_early=True, runs_alone=True)
