"""An operation's mutant score: every known wrong and right answer, tried in every element type at one small shape."""

from collections.abc import Mapping

from forge.domain.operation import Operation
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.admission.mutants import admit, answers_tried
from forge.operations.scores import MutantScore

ROWS, WIDTH, OTHERS = 7, 33, 4
"""Of the public shape that is asked beside the small ones, which every task is tried at."""


def score(operation: Operation, policy: Policy) -> MutantScore:
    """Try them all; deterministic."""
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
    """The shape that a score is tried at."""
    sizes = dict.fromkeys(operation.axes, OTHERS)
    return {**sizes, operation.row_axis: ROWS, operation.reduced_axis: WIDTH}
