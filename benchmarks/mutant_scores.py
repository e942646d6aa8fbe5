"""Tries every operation on known wrong and right answers, and writes what came of it: `make scores` (a minute)."""

import json
import sys
from collections.abc import Mapping

from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.admission.mutants import admit, mutants_of, variants_of
from forge.operations import OPERATIONS
from forge.operations.operation import Operation
from forge.operations.scores import SCORES_FILE, MutantScore

ROWS, WIDTH, OTHER_SIZES = 7, 33, 4
"""Sizes of the axes of the public shape that is asked besides the small shapes, which every task has."""


def score(operation: Operation, policy: Policy) -> MutantScore:
    """Try all known answers, in each element type at a small shape; the result is deterministic."""
    mutants: dict[str, None] = {}
    honest: dict[str, None] = {}
    survivors: dict[str, tuple[DType, ...]] = {}
    refused: dict[str, tuple[DType, ...]] = {}
    for dtype in operation.dtypes:
        found = admit(operation, scored_shape(operation), dtype, policy)
        mutants |= dict.fromkeys(name for name, _ in mutants_of(operation, dtype))
        honest |= dict.fromkeys(name for name, _ in variants_of(operation))
        for names, by_name in ((found.survivors, survivors), (found.refused, refused)):
            by_name |= {name: (*by_name.get(name, ()), dtype) for name in names}
    return MutantScore(mutants=tuple(mutants), survivors=survivors, honest=tuple(honest), refused=refused)


def scored_shape(operation: Operation) -> Mapping[str, int]:
    """Return the public shape of a mutant score: few rows, an odd width, and small other axes."""
    sizes = dict.fromkeys(operation.axes, OTHER_SIZES)
    return {**sizes, operation.row_axis: ROWS, operation.reduced_axis: WIDTH}


def main() -> None:
    """Write the file anew, one operation after the other."""
    recorded = {}
    for name, operation in OPERATIONS.items():
        found = score(operation, Policy())
        recorded[name] = found.model_dump(mode="json")
        sys.stderr.write(f"{name}: {found.killed} of {len(found.mutants)} refused\n")
    SCORES_FILE.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
