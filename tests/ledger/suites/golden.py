"""Writes the golden ledger of today's format, once: python -m tests.ledger.suites.golden. It is never edited again.

It has rows in every table: events of every type that can be appended, a tree of two levels, and another ledger's.
"""

import tempfile
from pathlib import Path

from forge.app.ledger.bundles import export
from forge.app.ledger.signing import checkpoint, rotate_key
from forge.app.user.home import LEDGER_FILE
from forge.app.workspace import Workspace
from forge.ledger.audit.history import audit
from forge.ledger.schema import USER_VERSION
from forge.ledger.signatures.checkpoints import issue
from tests.ledger.making import examples
from tests.ledger.sharing import taken_in
from tests.ledger.suites.ledgers import fill

GOLDEN = Path(__file__).parents[1] / "golden"


def silent(_: str) -> None:
    """Ignore the progress."""


def written(folder: Path) -> Path:
    """The database of a workspace with rows in every table, closed."""
    with Workspace.create(folder / "other", origin="kernels/other") as other:
        fill(other.ledger, 20)
        export(other, folder / "bundle", since=0, progress=silent)
    own = Workspace.create(folder / "own", origin="kernels/example")
    try:
        taken_in(own.ledger, own.blobs, folder / "bundle")
        checkpoint(own, new_key=False, copy=None)
        rotate_key(own)
        fill(own.ledger, 120)
        signed = ("LedgerImported", "LedgerRestored")  # these speak of this ledger, and must be true
        facts = [event for name, event in examples().items() if name not in signed]
        own.ledger.append(facts, actor="cli:ada", correlation_id="all", idempotency_key="all")
        fill(own.ledger, 120)
        issue(own.ledger, own.keyring, actor="cli:ada")
    finally:
        own.ledger.close()
    return folder / "own" / LEDGER_FILE


def main() -> None:
    target = GOLDEN / f"format-{USER_VERSION}.db"
    assert not target.exists(), f"{target} stands: a golden file isn't edited"
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder))
        report = audit(path)
        assert report.ok, report.problems
        target.write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
