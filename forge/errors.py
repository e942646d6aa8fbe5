"""Every exception Forge raises, as one tree; `docs/errors.md` explains each code.

    ForgeError
    |- UsageError             exit 2: the caller's input is wrong; says what was expected and what to do next
    |  |- UnknownName           a name that isn't in a catalogue
    |  |- WorkspaceNotFound     no ledger here
    |  |- ReferenceRefused      a reference file that no task can be judged against
    |  |- RunNotFound           no run, or more than one, under that name
    |  '- PhaseOutOfOrder       the run isn't in the state this phase needs
    |- EnvironmentUnfit       exit 3: this machine can't (no compiler, no GPU, no sandbox)
    |- AlreadyDecided         exit 1: that was decided before, and saying it again would add nothing
    |- LessonRefused          exit 1: the evidence that a lesson names isn't there, or speaks against it
    |- LoadRefused            exit 1: promoted code was withdrawn since it answered, or can't be loaded here
    |- WeakTask               exit 1: the task's own inputs and bound can't tell wrong answers from right ones
    '- IntegrityError         exit 1: recorded history or a blob isn't what it was, or can't be added to
       |- LedgerCorrupt         the database isn't a ledger, or its chain, schema or settings are broken
       |- ConcurrencyConflict   a stream moved on between reading and appending
       |- IdempotencyConflict   the same command key with other content
       |- ActorForbidden        this class of actor may not write this event
       |- BlobCorrupt           stored bytes don't match their digest, or are missing
       |- CheckpointRefused     the ledger isn't an extension of what was signed before
       |- BundleRefused         a bundle of another ledger's events is damaged, or not what it says
       |  '- LedgerForked        it contradicts what is here: two histories of one ledger
       |- ProofRefused          a proof, a signature or an artifact doesn't fit the others
       '- StorageFailed         the disk refused (full, read only)

A refused candidate is a value (`forge.domain.verdict`), never an exception.
"""


class ForgeError(Exception):
    """Base of all; `message` names the value, what was expected, and the next step."""

    code = "FORGE"
    exit_status = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """The next command to try, printed as the last line on stderr."""


class UsageError(ForgeError):
    """The caller's input is wrong."""

    code = "USAGE"
    exit_status = 2


class UnknownName(UsageError):
    """A name that isn't in its catalogue."""

    code = "UNKNOWN_NAME"
    NAMED = 5
    """Of many names, so many stand in a message."""

    def __init__(
        self, kind: str, value: str, known: list[str], *, near: tuple[str, ...] = (), listed_by: str | None = None
    ) -> None:
        """`near` are the likeliest of `known`; where a command lists these, a few are named and the rest counted."""
        nearest = f"; nearest: {', '.join(near)}" if near else ""
        expected = f"expected one of {', '.join(sorted(known))}" if known else "there is none here"
        left = len(known) - self.NAMED
        if listed_by is not None and left > 0:
            first = [*near, *(one for one in sorted(known) if one not in near)][: self.NAMED]
            expected, nearest = f"expected one of {', '.join(first)}, or of {left} more, which {listed_by} lists", ""
        super().__init__(f"unknown {kind} {value!r:.200}: {expected}{nearest}", hint=listed_by)


class WorkspaceNotFound(UsageError):
    """There is no workspace here."""

    code = "WORKSPACE_NOT_FOUND"


class ReferenceRefused(UsageError):
    """A reference file that no task can be judged against; the message says why."""

    code = "REFERENCE_REFUSED"


class RunNotFound(UsageError):
    """No run, or more than one, goes by that name."""

    code = "RUN_NOT_FOUND"


class PhaseOutOfOrder(UsageError):
    """The run isn't in the state that this phase needs."""

    code = "PHASE_OUT_OF_ORDER"


class EnvironmentUnfit(ForgeError):
    """What was asked can't be done on this machine."""

    code = "ENVIRONMENT_UNFIT"
    exit_status = 3


class AlreadyDecided(ForgeError):
    """What is asked for was decided and recorded before; nothing is recorded twice."""

    code = "ALREADY_DECIDED"


class LessonRefused(ForgeError):
    """The evidence that a lesson names isn't there, or speaks against it."""

    code = "LESSON_REFUSED"


class LoadRefused(ForgeError):
    """Promoted code was withdrawn since it answered, or isn't what this machine may load."""

    code = "LOAD_REFUSED"


class WeakTask(ForgeError):
    """The task would accept a known wrong answer, or refuse a known right one."""

    code = "WEAK_TASK"


class IntegrityError(ForgeError):
    """Recorded history or a blob isn't what it was, or can't be added to."""

    code = "INTEGRITY"


class LedgerCorrupt(IntegrityError):
    """The database isn't a ledger, or its chain, schema or settings are broken."""

    code = "LEDGER_CORRUPT"


class ConcurrencyConflict(IntegrityError):
    """A stream moved on between reading and appending: read again and decide again."""

    code = "CONCURRENCY_CONFLICT"

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stream {stream!r} is at version {actual}, expected {expected}: "
            "another process appended first; run the command again"
        )
        self.stream = stream
        self.expected = expected
        self.actual = actual


class IdempotencyConflict(IntegrityError):
    """The same command key was used before with other content."""

    code = "IDEMPOTENCY_CONFLICT"


class ActorForbidden(IntegrityError):
    """An actor of this class may not write this event."""

    code = "ACTOR_FORBIDDEN"


class BlobCorrupt(IntegrityError):
    """Stored bytes are missing or don't match their digest."""

    code = "BLOB_CORRUPT"


class CheckpointRefused(IntegrityError):
    """The ledger isn't an extension of what its key signed before, so the key doesn't sign it."""

    code = "CHECKPOINT_REFUSED"


class ProofRefused(IntegrityError):
    """A proof, a signature or an artifact doesn't fit the others."""

    code = "PROOF_REFUSED"


class BundleRefused(IntegrityError):
    """A bundle of another ledger's events is damaged, or isn't what it says."""

    code = "BUNDLE_REFUSED"


class LedgerForked(BundleRefused):
    """Two histories of one ledger: the events at one place differ."""

    code = "LEDGER_FORKED"


class StorageFailed(IntegrityError):
    """The disk refused (full, read only, gone); the message says what was recorded by then, if anything."""

    code = "STORAGE_FAILED"
