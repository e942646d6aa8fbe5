"""One published snapshot: read, held against its digest, and parsed as far as it is asked."""

from forge.errors import BlobCorrupt, IntegrityError
from forge.lookup.choice import Choice
from forge.lookup.offer import parse_offers
from forge.lookup.published import (
    KERNEL_NAME,
    POINTER_BYTES,
    SNAPSHOT_BYTES,
    is_digest,
    is_plain,
    is_text,
    read_published,
)
from forge.lookup.sizes import is_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forge.lookup.offer import Document, Offer, Slot
    from forge.lookup.question import Question
    from forge.lookup.result import Result
    from forge.proof.note import VerifierKey

SCHEMA_VERSION = 3
BETWEEN = len(b",\n")
"""Number of bytes between two kernels of a snapshot."""
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
"""Exceptions that parsing raises for a malformed document."""
CHOICES_KEPT = 4096
"""Number of slots and policies whose index is kept: more than an engine asks for. The limit bounds memory."""
ATTEMPTS = 20
"""Number of times that a reader follows a pointer which changed while its snapshot was read. Chosen; a try fails only
if another publication ends within it."""


class Generation:
    """One published snapshot. Its answers never change."""

    def __init__(self, root: str, pointer: bytes, key: "VerifierKey | None" = None) -> None:
        self.root, self.pointer = root, pointer
        self.answers: dict[tuple[object, ...], Result] = {}
        """Answers by the fields of their questions."""
        self._offers: dict[Slot, tuple[Offer, ...]] = {}
        self._choices: dict[tuple[object, ...], Choice] = {}
        try:
            self._follow(pointer, key)
        except DAMAGE as error:
            raise self._damaged(error) from error

    def _follow(self, pointer: bytes, key: "VerifierKey | None") -> None:
        import json

        current = json.loads(pointer)
        _check_schema(current)
        if not is_digest(current["sha256"]) or current["snapshot"] != f"lookup-{current['sha256'][:12]}.json":
            raise ValueError(f"current.json names {current['snapshot']!r}, which isn't its digest's name")
        self.sha256: str = current["sha256"]
        ledger = current["ledger"]
        if not (is_text(ledger["ledger_id"]) and is_text(ledger["event_hash"]) and is_size(ledger["seq"])):
            raise ValueError(f"current.json names the ledger {ledger!r}: expected its id, an event's number and hash")
        self.ledger_id: str = ledger["ledger_id"]
        self.seq: int = ledger["seq"]
        self.event_hash: str = ledger["event_hash"]
        if key is not None:
            from forge.proof.publication import require_vouched

            at = {"ledger_id": self.ledger_id, "event_hash": self.event_hash, "sha256": self.sha256}
            require_vouched(current.get("note"), key, seq=self.seq, **at)
        name: str = current["snapshot"]
        self._content = read_published(self.root, name, limit_bytes=SNAPSHOT_BYTES, sha256=self.sha256)
        end = self._content.index(b"\n")
        head = json.loads(self._content[:end] + b"]}")
        _check_schema(head)
        self.gpus: dict[str, str] = dict(head["gpus"])
        if not all(is_text(gpu) and is_text(arch) for gpu, arch in self.gpus.items()):
            raise ValueError(f"its GPUs are {self.gpus!r}: expected the architecture of each")
        self.operations = _described(head.get("ops", {}))
        """Operations that can be adopted -> the digests of their description and of their reference."""
        self._places: dict[Slot, tuple[int, int, int]] = {}
        self._slots: dict[str, list[Slot]] = {}
        self.kernels = 0
        self._index(head["slots"], end + 1)

    def _index(self, slots: "dict[str, dict[str, dict[str, list[int]]]]", at: int) -> None:
        """Find where the kernels of each slot lie: in the order of `slots`, to the end of the snapshot."""
        for op, gpus in slots.items():
            own = self._slots[op] = [(op, gpu, dtype) for gpu, dtypes in gpus.items() for dtype in dtypes]
            for slot in own:
                count, length = gpus[slot[1]][slot[2]]
                if not all(map(is_text, slot)):
                    raise ValueError(f"slot {slot!r} isn't named by text")
                if type(count) is not int or type(length) is not int or count < 1 or length < 1:
                    raise ValueError(f"slot {slot!r} has {count!r} kernels in {length!r} bytes")
                self._places[slot] = (at, at + length, count)
                self.kernels += count
                at += length + BETWEEN
        # the snapshot ends in a line end and two brackets, where the next kernel would be two bytes further
        expected = len(self._content) - len(b"\n]}") + (BETWEEN if self._places else 0)
        if at != expected:
            raise ValueError(f"its kernels end at byte {at}, expected {expected}")

    def offers(self, slot: "Slot") -> "tuple[Offer, ...]":
        """Return the kernels of an operation, GPU and dtype; raise BlobCorrupt if one lacks what a kernel has."""
        found = self._offers.get(slot)
        if found is None:
            place = self._places.get(slot)
            found = () if place is None else self._parse(slot, *place)
            if place is not None:
                self._offers[slot] = found
        return found

    def _parse(self, slot: "Slot", start: int, end: int, count: int) -> "tuple[Offer, ...]":
        try:
            found = parse_offers(self._content[start:end], slot, self.root)
            if len(found) != count:
                raise ValueError(f"slot {slot!r} has {len(found)} kernels, expected {count}")
        except DAMAGE as error:
            raise self._damaged(error) from error
        return found

    def offers_of(self, op: str) -> "list[Offer]":
        """Return every kernel of an operation."""
        return [offer for slot in self._slots.get(op, ()) for offer in self.offers(slot)]

    def choice_for(self, question: "Question") -> Choice:
        """Return an index of the kernels that may answer this question, or another one that differs in its shape."""
        alike = (question.op, question.gpu, question.dtype, question.language, question.policy.key)
        found = self._choices.get(alike)
        if found is None:
            family = question.policy.gpu == "family"
            offers = self.offers_of(question.op) if family else self.offers(alike[:3])
            found = Choice(question, offers)
            if len(self._choices) >= CHOICES_KEPT:
                self._choices.clear()
            self._choices[alike] = found
        return found

    def _damaged(self, error: Exception) -> BlobCorrupt:
        return BlobCorrupt(
            f"the lookup snapshot in {self.root!r} can't be read: {str(error)[:300]!r}; publish the registry again",
            hint="forge ledger rebuild",
        )


def read_newest(root: str, name: str, key: "VerifierKey | None" = None) -> Generation:
    """Read the generation that the pointer `name` in `root` names; raise IntegrityError if `key` didn't sign it."""
    pointer = read_published(root, name, limit_bytes=POINTER_BYTES)
    for _ in range(ATTEMPTS):
        try:
            return Generation(root, pointer, key)
        except BlobCorrupt:
            # a publisher may have moved on and removed the snapshot meanwhile
            again = read_published(root, name, limit_bytes=POINTER_BYTES)
            if again == pointer:
                raise
            pointer = again
    raise BlobCorrupt(f"{root!r} is published faster than it can be read: stop one of its publishers, and try again")


def _described(untrusted: "Document") -> dict[str, tuple[str, str]]:
    found = {op: (files["description"], files["reference"]) for op, files in untrusted.items()}
    for op, digests in found.items():
        if not is_plain(op, KERNEL_NAME) or not all(map(is_digest, digests)):
            raise ValueError(f"operation {op!r} is described by {digests!r}: expected two digests")
    return found


def _check_schema(document: "Document") -> None:
    found = document["schema_version"]
    if type(found) is not int:
        raise ValueError(f"bad schema_version {found!r}")
    if found > SCHEMA_VERSION:
        raise IntegrityError(f"lookup snapshot of schema {found}, expected {SCHEMA_VERSION}: upgrade Forge")
    if found < SCHEMA_VERSION:
        raise IntegrityError(
            f"lookup snapshot of schema {found}, expected {SCHEMA_VERSION}: publish the registry again",
            hint="forge ledger rebuild",
        )
