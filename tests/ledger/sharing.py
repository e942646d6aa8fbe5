"""Two ledgers on two machines: one that exports, one that imports."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from forge.domain.digest import sha256
from forge.events.prompt import PromptRendered
from forge.ledger.blobs import BlobStore
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.signatures.signing import log_name
from forge.ledger.store import Ledger
from forge.ledger.transfer.check_bundle import CheckedBundle
from forge.ledger.transfer.export import Exported, export
from forge.ledger.transfer.import_bundle import take_in
from forge.proof.note import VerifierKey

from .making import new_id, now, open_ledger

THERE = "01955777-1111-7abc-8def-0123456789ab"
ADA = "cli:ada@lab"


def quiet(_: str) -> None:
    """Ignore the progress."""


def taken_in(ledger: Ledger, blobs: BlobStore, source: Path, *, trusted: VerifierKey | None = None) -> CheckedBundle:
    """A bundle's rows beside a ledger's own. They needn't make sense as events."""
    return take_in(ledger, blobs, source, trusted=trusted, actor=ADA, examine=lambda *_: None, progress=quiet)


@dataclass(frozen=True)
class Machine:
    """A ledger with its key and its blobs, in one folder."""

    folder: Path
    ledger_id: str
    origin: str = "kernels/far"

    @property
    def path(self) -> Path:
        return self.folder / "kernel_registry.db"

    @property
    def runs(self) -> Path:
        return self.folder / "forge_runs"

    @property
    def blobs(self) -> BlobStore:
        return BlobStore(self.runs / "cas")

    @property
    def keyring(self) -> Keyring:
        return Keyring(self.folder / "keys", log_name(self.origin, self.ledger_id))

    def create(self, seed: int = 9) -> "Machine":
        self.folder.mkdir()
        key = self.keyring.make(bytes([seed]) * 32)
        Ledger.create(
            self.path,
            ledger_id=self.ledger_id,
            origin=self.origin,
            forge_version="0.1.0",
            now=now,
            new_id=new_id,
            public_key=base64.b64encode(key.public).decode(),
        ).close()
        return self

    def render(self, *texts: str) -> "Machine":
        """Append an event that names a blob, which names another, for each text."""
        with open_ledger(self.path) as ledger:
            for text in texts:
                inner = self.blobs.put(f"inner {text}".encode())
                digest = self.blobs.put(json.dumps({"samples_sha256": inner, "text": text}).encode())
                event = PromptRendered(
                    run_id="20260301T120000_rmsnorm_cpu_0a1b2c",
                    task_id="t",
                    template="brief",
                    template_version=1,
                    template_sha256=sha256(b"template"),
                    rendered_sha256=digest,
                    variables_sha256=sha256(b"variables"),
                )
                ledger.append([event], actor=ADA, correlation_id="c")
        return self

    def export(self, target: Path, *, since: int = 0) -> Exported:
        with open_ledger(self.path) as ledger:
            return export(ledger, self.keyring, self.blobs, target, since=since, actor=ADA, progress=quiet)

    def take_in(self, source: Path, *, trusted: VerifierKey | None = None) -> CheckedBundle:
        with open_ledger(self.path) as ledger:
            return taken_in(ledger, self.blobs, source, trusted=trusted)
