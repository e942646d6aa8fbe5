"""A published registry, opened for questions, and what it says of its own health."""

from forge.lookup.frozen import Frozen
from forge.lookup.policy import STRICT, Policy
from forge.lookup.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from threading import Lock

    from forge.lookup.generation import Generation
    from forge.proof.note import VerifierKey

    Signature = tuple[int, int, int, int]

ANSWERS_KEPT = 8192
"""Number of answers that a generation keeps before it drops them all. Chosen; engines ask for the same few shapes,
and the limit bounds memory."""

NO_SHAPE = {"any": 1}
"""Shape of a question about a slot as a whole: which kernels may answer at some shape doesn't depend on it."""


class Health(Frozen):
    """`ok` unless the newest publication can't be read and an older one answers; `error` says why.

    `stale`: what is published now isn't what answers, or the ledger beside the registry has decided something that
    isn't published. In the first case `refresh()` takes it up, or says what is wrong with it. In the second any
    `forge` command publishes it. `published_s`: when the pointer that answers was written, in seconds since the
    epoch. A quiet ledger publishes nothing new, so an old publication may well be the newest.
    """

    __slots__ = (
        "error",
        "event_hash",
        "generation",
        "kernels",
        "ledger_id",
        "ledger_seq",
        "ok",
        "published_s",
        "stale",
    )

    ok: bool
    error: str | None
    stale: bool
    generation: str
    kernels: int
    ledger_id: str
    ledger_seq: int
    event_hash: str
    published_s: float

    def __init__(self, shown: "Shown", error: str | None, *, stale: bool) -> None:
        at = shown.generation
        self._fill(ok=error is None, error=error, stale=stale, generation=at.sha256, kernels=at.kernels)
        self._fill(ledger_id=at.ledger_id, ledger_seq=at.seq, event_hash=at.event_hash)
        self._fill(published_s=shown.signature[2] / 1e9)


class Shown(Frozen):
    """A generation with the signature of the pointer that named it: they change together or not at all."""

    __slots__ = ("generation", "signature")

    generation: "Generation"
    signature: "Signature"

    def __init__(self, generation: "Generation", signature: "Signature") -> None:
        self._fill(generation=generation, signature=signature)


class Registry:
    """A published registry, opened for questions. Safe to ask from several threads while one refreshes."""

    def __init__(self, pointer_path: str, key: "VerifierKey | None" = None) -> None:
        self._key = key
        self._root, _, self._name = pointer_path.rpartition("/")
        self._error: str | None = None
        self._lock: tuple[int, Lock] | None = None
        self._shown = self._read()

    @classmethod
    def open(cls, path: "str | os.PathLike[str]", *, key: "str | os.PathLike[str] | None" = None) -> "Registry":
        """Open a workspace, its kernel_registry directory, or the current.json in it.

        `key` is the ledger's verifier key, or a file with it, that the caller got by another way than the registry.
        Each publication must be signed by it, now and at every refresh, and none may be older than the one before.
        Raises WorkspaceNotFound if nothing is published there, and BlobCorrupt if a published file has changed.
        Raises ProofRefused if the key doesn't vouch for it, and UsageError for text that isn't a verifier key.
        """
        import os

        from forge.errors import WorkspaceNotFound

        trusted = None
        if key is not None:
            from forge.proof.files import key_of

            trusted = key_of(os.fspath(key))
        where = os.path.abspath(path)
        for pointer in (where, f"{where}/current.json", f"{where}/kernel_registry/current.json"):
            if os.path.isfile(pointer):
                return cls(pointer, trusted)
        expected = "expected a workspace, a kernel_registry directory or a current.json"
        raise WorkspaceNotFound(f"no published registry at {where!r}: {expected}")

    @property
    def generation(self) -> str:
        """The digest of the snapshot that lookups use now; a refresh may change it."""
        return self._shown.generation.sha256

    @property
    def key(self) -> str | None:
        """The verifier key that must vouch for each publication; None if everything is believed."""
        return None if self._key is None else str(self._key)

    @property
    def root(self) -> str:
        """The folder that is published."""
        return self._root

    @property
    def gpus(self) -> "dict[str, str]":
        """Name of each GPU in the recorded environments -> its architecture, such as `sm_90`."""
        return dict(self._shown.generation.gpus)

    @property
    def operations(self) -> "dict[str, tuple[str, str]]":
        """The operations that can be adopted, each with the digests of its description and its reference."""
        return dict(self._shown.generation.operations)

    def read_operation(self, op: str) -> tuple[bytes, bytes]:
        """Return the description and the reference of an operation; raise BlobCorrupt if they aren't as published.

        Raises UsageError if the registry describes no operation, UnknownName if it doesn't describe this one.
        """
        from forge.errors import UnknownName, UsageError
        from forge.lookup.published import read_published

        known = self._shown.generation.operations
        if not known:
            raise UsageError(
                f"the registry in {self._root!r} describes no operation, so none can be adopted: expected files "
                "under ops/; describe its operations in its workspace",
                hint="forge op describe",
            )
        if op not in known:
            raise UnknownName("operation", op, list(known))
        description, reference = known[op]
        return (
            read_published(self._root, f"ops/{op}.json", sha256=description),
            read_published(self._root, f"ops/{op}.py", sha256=reference),
        )

    def lookup(
        self,
        *,
        op: str,
        gpu: str,
        dtype: str,
        shape: "Mapping[str, int]",
        language: str | None = None,
        policy: Policy = STRICT,
    ) -> Result:
        """Return the best kernel for a slot under `policy`; the same snapshot and question give the same answer.

        Reads no file. Raises UsageError for a bad argument, BlobCorrupt if what was published for the
        slot makes no sense.
        """
        current = self._shown.generation
        try:
            found = current.answers.get((op, gpu, dtype, language, policy.key, *shape, *shape.values()))
            if found is not None:
                for size in shape.values():
                    if type(size) is not int:  # True and 1.0 are equal to 1, and no size
                        break
                else:
                    return found
        except (AttributeError, TypeError):
            pass  # the question says what is wrong with it
        from forge.lookup.question import Question

        question = Question(op, gpu, dtype, shape, language=language, policy=policy, gpus=current.gpus)
        result = Result(question, current.choice_for(question), current.sha256, current.offers_of)
        if len(current.answers) >= ANSWERS_KEPT:
            current.answers.clear()
        current.answers[(op, gpu, dtype, language, policy.key, *shape, *shape.values())] = result
        return result

    def may_answer(self, *, op: str, gpu: str, dtype: str, policy: Policy = STRICT) -> bool:
        """Return whether a kernel answers for the slot at some shape; False says that every lookup finds none.

        Reads no file. Raises as `lookup` does.
        """
        from forge.lookup.question import Question

        current = self._shown.generation
        question = Question(op, gpu, dtype, NO_SHAPE, language=None, policy=policy, gpus=current.gpus)
        return bool(current.choice_for(question))

    def load(self, result: Result, *, trust: str, abi_key: str | None = None) -> "Callable[..., object]":
        """Return the promoted function itself, imported into this process from bytes that match their digests.

        `trust="promoted"` says that the caller accepts this: the code runs here, without a wall. `abi_key` is that of
        this machine; a kernel that was built needs it. Raises UsageError without trust or kernel. Raises LoadRefused
        if the kernel was withdrawn since it answered, or can't be loaded here. Raises BlobCorrupt if a file isn't
        what was promoted, and EnvironmentUnfit if the kernel imports what this machine doesn't have.
        """
        from forge.errors import UsageError
        from forge.lookup.loading import load

        if trust != "promoted":
            raise UsageError(f'bad trust {trust!r}: say trust="promoted" to run promoted code in this process')
        if not isinstance(result, Result) or result.kernel is None:
            raise UsageError("nothing to load: expected the result of a lookup whose match isn't none")
        return load(result.kernel, self._shown.generation, abi_key=abi_key)

    def refresh(self) -> bool:
        """Take up a newer publication; return whether there was one.

        Costs one stat while nothing changed. A publication that can't be read leaves the last good generation
        answering, and `health()` says so. If another thread is refreshing, this call returns False at once.
        """
        lock = self._own_lock()
        if not lock.acquire(blocking=False):
            return False
        try:
            return self._refresh()
        finally:
            lock.release()

    def health(self) -> Health:
        """Say which generation answers, and whether it is the newest published."""
        from forge.lookup.beside import newest_decision

        shown = self._shown
        at, decided = shown.generation, newest_decision(self._root.rpartition("/")[0])
        behind = decided is not None and not decided.is_published(at.ledger_id, at.seq)
        return Health(shown, self._error, stale=behind or _signature(self._path) != shown.signature)

    @property
    def _path(self) -> str:
        return f"{self._root}/{self._name}"

    def _refresh(self) -> bool:
        from forge.errors import IntegrityError, ProofRefused

        shown = self._shown
        if self._error is None and _signature(self._path) == shown.signature:
            return False
        try:
            found = self._read()
            if self._key is not None and found.generation.seq < shown.generation.seq:
                raise ProofRefused(
                    f"the publication went back from event {shown.generation.seq} to {found.generation.seq}: "
                    "publish the newest one, or open the registry anew if its owner went back"
                )
        except IntegrityError as error:
            self._error = error.message
            return False
        self._shown, self._error = found, None
        return found.generation.pointer != shown.generation.pointer

    def _read(self) -> Shown:
        from forge.lookup.generation import read_newest

        # taken before the pointer is read: if that moves on in between, the next refresh looks again
        signature = _signature(self._path) or (0, 0, 0, 0)
        return Shown(read_newest(self._root, self._name, self._key), signature)

    def _own_lock(self) -> "Lock":
        """Return the lock of this process. A lock that another thread held during a fork is never released here."""
        import os
        from threading import Lock

        lock = self._lock
        if lock is None or lock[0] != os.getpid():
            lock = self._lock = (os.getpid(), Lock())
        return lock[1]


def _signature(path: str) -> "Signature | None":
    """Return facts about the file at `path` that change if it is replaced; None if there is no file."""
    import os

    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
