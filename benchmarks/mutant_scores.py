"""Tries every operation on known wrong and right answers, and writes what came of it: `make scores` (a minute)."""

import json
import sys

from forge.domain.policy import Policy
from forge.lab.admission.score import score
from forge.operations import OPERATIONS
from forge.operations.scores import SCORES_FILE


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
