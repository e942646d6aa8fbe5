"""Does the answer follow the question, if the tensors are the same objects and only their contents are new?

A cache needs a key: a pointer, a version, a few sampled elements, sums of blocks, or upper bits. So this gate puts
new contents into the same storage, in this order. First come fresh values, then changes in low bits, a new weight,
and a new scalar. Then two elements of one operand change places within a row, which keeps cheap statistics of the
row. This is done for every operand, weights and positions included. Last comes the first question again. For a
reference file each operand alone is new as well, and elements change places within a whole operand.
"""

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate


def examine(kernel: LoadedKernel) -> Finding:
    """Ask related questions through the same tensors; the judge recognises an earlier answer."""
    questions = kernel.definition.related(lambda: kernel.case(kernel.shape), kernel.rng)
    for question in questions:
        checked = kernel.check([question])
        if isinstance(checked, Failed):
            return checked
    return Passed(observed=f"{len(questions)} related inputs, no cached answer", threshold="every answer fresh")


REPLAY = Gate(name="replay", examine=examine, runs_early=True)
