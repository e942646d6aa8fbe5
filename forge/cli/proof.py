"""verify-proof: checks a promotion without a workspace."""

from pathlib import Path
from typing import Annotated

import typer

from forge.cli.document import show_facts
from forge.cli.options import Json


def verify_proof(
    proof: Annotated[Path, typer.Argument(help="The .tlog-proof file.")],
    artifact: Annotated[Path, typer.Option(help="The kernel's kernel.py, or a file that was built from it.")],
    key: Annotated[
        str, typer.Option(help="The log's verifier key, or a file with it. Get it by another channel than the proof.")
    ],
    kernel: Annotated[
        str | None, typer.Option(help="The kernel id that the proof must be about.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a kernel's promotion with only the artifact, the proof and the public key.

    Example: forge verify-proof kernel.tlog-proof --artifact kernel.py --key ledger.vkey
    """
    from dataclasses import asdict

    from forge.errors import ProofRefused
    from forge.proof.files import check_files

    try:
        checked = asdict(check_files(proof, artifact, key, kernel_id=kernel))
    except ProofRefused as error:
        error.hint = "forge verify-proof --help"
        raise
    show_facts(checked, "The proof holds", as_json=as_json)
