"""`python -m forge.proof PROOF --artifact FILE --key KEY`: standard library and `cryptography` only.

Exit status: 0 the proof holds, 1 it is refused, 2 the input isn't usable.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from forge.errors import ForgeError
from forge.proof.files import check_files


def main() -> int:
    """Check one proof and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m forge.proof", description="Check one kernel's promotion.")
    parser.add_argument("proof", type=Path, help="the .tlog-proof file")
    parser.add_argument("--artifact", type=Path, required=True, help="kernel.py, or a file that was built from it")
    parser.add_argument("--key", required=True, help="the verifier key, or a file with it")
    parser.add_argument("--kernel", help="the kernel id that the proof must be about")
    given = parser.parse_args()
    try:
        checked = check_files(given.proof, given.artifact, given.key, kernel_id=given.kernel)
    except ForgeError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return error.exit_status
    sys.stdout.write(json.dumps(asdict(checked), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
