"""A published registry, opened for questions, and what it says of its own health."""

from forge.errors import IntegrityError, WorkspaceNotFound
from forge.lookup.answer import Result
from forge.lookup.generation import Generation, read_checked
from forge.lookup.question import STRICT, Policy, Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping


class Health:
    """`ok` unless the newest publication can't be read and an older one answers; `error` says why."""

    def __init__(self, generation: Generation, error: str | None) -> None:
        self.ok, self.error = error is None, error
        self.generation, self.kernels = generation.sha256, generation.kernels
        self.ledger_id, self.ledger_seq = generation.ledger_id, generation.seq
        self.event_hash = generation.event_hash


class Registry:
    """A published registry, opened for questions. Safe to ask from several threads while one refreshes."""

    def __init__(self, pointer_path: str) -> None:
        self._path = pointer_path
        self._directory = pointer_path.rpartition("/")[0]
        self._error: str | None = None
        self._current = Generation(self._directory, read_checked(pointer_path))

    @classmethod
    def open(cls, path: "str | os.PathLike[str]") -> "Registry":
        """Open a workspace, its kernel_registry directory, or the current.json in it.

        Raises WorkspaceNotFound if nothing is published there, BlobCorrupt if what is isn't what it was.
        """
        import os

        where = os.path.abspath(path)
        for pointer in (where, f"{where}/current.json", f"{where}/kernel_registry/current.json"):
            if os.path.isfile(pointer):
                return cls(pointer)
        expected = "expected a workspace, a kernel_registry directory or a current.json"
        raise WorkspaceNotFound(f"no published registry at {where!r}: {expected}")

    @property
    def generation(self) -> str:
        """The digest of the snapshot that answers."""
        return self._current.sha256

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
        """The best kernel for a slot under `policy`; the same snapshot and question give the same answer."""
        current = self._current
        question = Question(op, gpu, dtype, shape, language=language, policy=policy, gpus=current.gpus)
        return Result(question, current)

    def refresh(self) -> bool:
        """Take up a newer publication; return whether there was one.

        One that can't be read leaves the last good generation answering, and `health()` says so.
        """
        try:
            pointer = read_checked(self._path)
            newer = pointer != self._current.pointer
            if newer:
                self._current = Generation(self._directory, pointer)
        except IntegrityError as error:
            self._error = error.message
            return False
        self._error = None
        return newer

    def health(self) -> Health:
        """Which generation answers, and whether it is the newest published."""
        return Health(self._current, self._error)
