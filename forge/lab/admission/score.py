"""Computes an operation's mutant score: all known wrong and right answers, in each element type at a small shape."""

from collections.abc import Mapping

from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.admission.mutants import admit, answers_tried
from forge.operations.operation import Operation
from forge.operations.scores import MutantScore

ROWS, WIDTH, OTHER_SIZES = 7, 33, 4
"""Sizes of the axes of the public shape that is asked besides the small shapes, which every task has."""


def score(operation: Operation, policy: Policy) -> MutantScore:
    """Try all answers; the result is deterministic."""
    mutants: dict[str, None] = {}
    honest: dict[str, None] = {}
    survivors: dict[str, tuple[DType, ...]] = {}
    refused: dict[str, tuple[DType, ...]] = {}
    for dtype in operation.dtypes:
        tried = answers_tried(operation, dtype)
        found = admit(operation, scored_shape(operation), dtype, policy)
        mutants |= dict.fromkeys(tried.mutants)
        honest |= dict.fromkeys(tried.honest)
        for names, by_name in ((found.survivors, survivors), (found.refused, refused)):
            by_name |= {name: (*by_name.get(name, ()), dtype) for name in names}
    return MutantScore(mutants=tuple(mutants), survivors=survivors, honest=tuple(honest), refused=refused)


def scored_shape(operation: Operation) -> Mapping[str, int]:
    """Return the public shape of a mutant score: few rows, an odd width, and small other axes."""
    sizes = dict.fromkeys(operation.axes, OTHER_SIZES)
    return {**sizes, operation.row_axis: ROWS, operation.reduced_axis: WIDTH}
