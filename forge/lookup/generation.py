"""One published snapshot, read, held against its digest, and indexed."""

from forge.errors import BlobCorrupt, IntegrityError
from forge.lookup.question import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forge.lookup.question import Document

SCHEMA_VERSION = 1


class Generation:
    """One published snapshot, read and indexed; it never changes."""

    def __init__(self, directory: str, pointer: bytes) -> None:
        import json

        self.directory, self.pointer = directory, pointer
        try:
            current = json.loads(pointer)
            _check_schema(current)
            self.sha256: str = current["sha256"]
            if current["snapshot"] != f"lookup-{self.sha256[:12]}.json":
                raise BlobCorrupt(f"current.json names {current['snapshot']!r}, which isn't its digest's name")
            self.ledger_id: str = current["ledger"]["ledger_id"]
            self.seq: int = current["ledger"]["seq"]
            self.event_hash: str = current["ledger"]["event_hash"]
            snapshot = json.loads(read_checked(f"{directory}/{current['snapshot']}", sha256=self.sha256))
            _check_schema(snapshot)
            self.gpus: dict[str, str] = snapshot["gpus"]
            self.kernels: int = len(snapshot["kernels"])
            self.by_op: dict[str, list[Document]] = {}
            self.by_slot: dict[tuple[str, str, str], list[Document]] = {}
            for entry in sorted(snapshot["kernels"], key=lambda entry: str(entry["kernel_id"])):
                self.by_op.setdefault(entry["op"], []).append(entry)
                self.by_slot.setdefault((entry["op"], entry["gpu"], entry["dtype"]), []).append(entry)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BlobCorrupt(f"the lookup snapshot in {directory!r} can't be read: {error!r}") from error

    def kernels_for(self, question: Question) -> "list[Document]":
        """Every kernel that could answer."""
        if question.policy.gpu == "family":
            return self.by_op.get(question.op, [])
        return self.by_slot.get((question.op, question.gpu, question.dtype), [])


def _check_schema(document: "Document") -> None:
    found = document["schema_version"]
    if found != SCHEMA_VERSION:
        raise IntegrityError(f"lookup snapshot of schema {found!r}, expected {SCHEMA_VERSION}: upgrade Forge")


def read_checked(path: str, *, sha256: str | None = None) -> bytes:
    """The file's bytes, checked against `sha256`; raises BlobCorrupt."""
    import hashlib

    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BlobCorrupt(f"{path!r} can't be read: {error}; publish the registry again") from error
    found = hashlib.sha256(content).hexdigest()
    if sha256 not in {None, found}:
        raise BlobCorrupt(f"{path!r} has digest {found}, expected {sha256}: publish the registry again")
    return content
