"""Every exception Forge raises, as one tree; `docs/errors.md` explains each code.

    ForgeError
    |- UsageError             exit 2: the caller's input is wrong; the message says what was expected
    |  |- UnknownName           a name that isn't in a catalogue
    |  |- WorkspaceNotFound     there is no ledger here
    |  |- ReferenceRefused      no task can be judged against this reference file
    |  |- RunNotFound           no run has this name, or several have
    |  |- SessionNotFound       no session has this name, or several have
    |  |- SessionTaken          another process works on the session
    |  |- TranscriptRefused     a session's transcript is of another version or author
    |  |- PhaseOutOfOrder       the run isn't in the state that this phase needs
    |  |- NotFound              there is nothing by this name, or the caller may not know of it
    |  '- RequestRefused        a request over HTTP or MCP breaks a rule of the server
    |     '- TokenRefused          the token is missing, unknown, revoked or expired
    |- EnvironmentUnfit       exit 3: this machine lacks something (compiler, GPU, sandbox)
    |  '- RemoteFailed           another machine can't be reached, or sent no message of Forge
    |- ReplayDiverged         exit 1: a replayed session gave other events than those recorded
    |- AlreadyDecided         exit 1: the same decision is already recorded
    |- LessonRefused          exit 1: the evidence of a lesson is missing, or contradicts it
    |- AdoptionRefused        exit 1: in strict mode, a call that no promoted kernel may answer
    |- LoadRefused            exit 1: a promoted kernel was withdrawn after the lookup, or can't be loaded here
    |- WeakTask               exit 1: the task's inputs and bound don't tell wrong answers from right ones
    '- IntegrityError         exit 1: recorded history or a blob has changed, or can't be appended to
       |- LedgerCorrupt         the database isn't a ledger, or its chain, schema or settings are broken
       |- ConcurrencyConflict   another process appended to a stream between reading and appending
       |- IdempotencyConflict   a command key was used before with other content
       |- ActorForbidden        this class of actor may not write this event
       |- BlobCorrupt           stored bytes are missing, or don't match their digest
       |- CheckpointRefused     the ledger doesn't extend what was signed before
       |- BundleRefused         a bundle of another ledger's events is damaged or inconsistent
       |  '- LedgerForked        the bundle contradicts this ledger: two histories of one ledger
       |- ProofRefused          a proof, a signature and an artifact don't match
       '- StorageFailed         the disk refused (full, read-only)

A refused candidate is a value (`forge.domain.verdict`), never an exception.
"""

from collections.abc import Iterable

LONGEST_MISTAKE = 200
"""Largest length of a name that is compared with known ones: comparing takes time by the square of the length."""


class ForgeError(Exception):
    """Base of all errors of Forge. `message` names the value, what was expected, and the next step."""

    code = "FORGE"
    exit_status = 1
    next_step: str | None = None
    """Next command for errors of this class that have no `hint`; None for the help of the command that failed."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """Next command to try. The command line prints it, or `next_step`, as the last line on stderr."""
        self.document: dict[str, object] = {}
        """Further fields of the JSON document that the command line prints for this error."""


class UsageError(ForgeError):
    """The caller's input is wrong."""

    code = "USAGE"
    exit_status = 2


def near_names(untrusted_name: object, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three of the `known` names that are spelt like a mistaken one, the most alike first."""
    from difflib import get_close_matches

    if not isinstance(untrusted_name, str) or len(untrusted_name) > LONGEST_MISTAKE:
        return ()
    return tuple(get_close_matches(untrusted_name, list(known), n=3))


class UnknownName(UsageError):
    """A name that isn't in its catalogue."""

    code = "UNKNOWN_NAME"
    NAMED = 5
    """Largest number of known names in a message if a command lists them all; more are hard to read."""

    def __init__(
        self, kind: str, value: str, known: list[str], *, near: tuple[str, ...] = (), listed_by: str | None = None
    ) -> None:
        """Build the message from the names that are `known`.

        `near` are the likeliest of them; default: those that are spelt alike. If the command `listed_by` lists them
        all, the message names only a few.
        """
        near = near or near_names(value, known)
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
    """No task can be judged against this reference file; the message says why."""

    code = "REFERENCE_REFUSED"


class RunNotFound(UsageError):
    """No run has this name, or several have."""

    code = "RUN_NOT_FOUND"
    next_step = "forge run list"


class SessionNotFound(UsageError):
    """No session has this name, or several have."""

    code = "SESSION_NOT_FOUND"
    next_step = "forge agent list"


class SessionTaken(UsageError):
    """Another process works on the session."""

    code = "SESSION_TAKEN"
    next_step = "forge agent list"


class TranscriptRefused(UsageError):
    """A session's transcript is of another version of Forge, or of another author."""

    code = "TRANSCRIPT_REFUSED"


class PhaseOutOfOrder(UsageError):
    """The run isn't in the state that this phase needs."""

    code = "PHASE_OUT_OF_ORDER"


class NotFound(UsageError):
    """There is nothing by this name, or this caller may not know of it."""

    code = "NOT_FOUND"


class RequestRefused(UsageError):
    """A request over HTTP or MCP breaks a rule of the server. `status` is its HTTP status."""

    code = "REQUEST_REFUSED"

    def __init__(self, message: str, *, status: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class TokenRefused(RequestRefused):
    """The token is missing, unknown, revoked or expired."""

    code = "TOKEN_REFUSED"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, status=401, hint=hint)


class EnvironmentUnfit(ForgeError):
    """The machine lacks what the command needs."""

    code = "ENVIRONMENT_UNFIT"
    exit_status = 3
    next_step = "forge doctor"


class RemoteFailed(EnvironmentUnfit):
    """Another machine can't be reached, or answered with what is no message of Forge."""

    code = "REMOTE_FAILED"


class ReplayDiverged(ForgeError):
    """A replayed session gave other events than those recorded."""

    code = "REPLAY_DIVERGED"
    next_step = "forge explain REPLAY_DIVERGED"


class AlreadyDecided(ForgeError):
    """A decision that is already recorded: nothing is recorded twice."""

    code = "ALREADY_DECIDED"
    next_step = "forge kernel list"


class LessonRefused(ForgeError):
    """The evidence of a lesson is missing, or contradicts the lesson."""

    code = "LESSON_REFUSED"
    next_step = "forge lesson list"


class LoadRefused(ForgeError):
    """A promoted kernel was withdrawn after the lookup, or this machine can't load it."""

    code = "LOAD_REFUSED"
    next_step = "forge kernel list"


class AdoptionRefused(ForgeError):
    """In strict mode, no promoted kernel may answer a call; the message has the reason."""

    code = "ADOPTION_REFUSED"
    next_step = "forge explain ADOPTION_REFUSED"


class WeakTask(ForgeError):
    """The task would accept a known wrong answer, or refuse a known right one."""

    code = "WEAK_TASK"
    next_step = "forge explain WEAK_TASK"


class IntegrityError(ForgeError):
    """Recorded history or a blob has changed, or can't be appended to."""

    code = "INTEGRITY"
    next_step = "forge ledger verify"


class LedgerCorrupt(IntegrityError):
    """The database isn't a ledger, or its chain, schema or settings are broken."""

    code = "LEDGER_CORRUPT"


class ConcurrencyConflict(IntegrityError):
    """Another process appended to a stream between reading and appending. Read again and decide again."""

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
    """A command key was used before with other content."""

    code = "IDEMPOTENCY_CONFLICT"
    next_step = "forge ledger log"


class ActorForbidden(IntegrityError):
    """An actor of this class may not write this event."""

    code = "ACTOR_FORBIDDEN"
    next_step = "forge explain ACTOR_FORBIDDEN"


class BlobCorrupt(IntegrityError):
    """Stored bytes are missing or don't match their digest."""

    code = "BLOB_CORRUPT"


class CheckpointRefused(IntegrityError):
    """The ledger doesn't extend what its key signed before, so the key doesn't sign it."""

    code = "CHECKPOINT_REFUSED"


class ProofRefused(IntegrityError):
    """A proof, a signature and an artifact don't match."""

    code = "PROOF_REFUSED"
    next_step = "forge explain PROOF_REFUSED"


class BundleRefused(IntegrityError):
    """A bundle of another ledger's events is damaged or inconsistent."""

    code = "BUNDLE_REFUSED"
    next_step = "forge explain BUNDLE_REFUSED"


class LedgerForked(BundleRefused):
    """One ledger has two histories: the events at one position differ."""

    code = "LEDGER_FORKED"
    next_step = "forge explain LEDGER_FORKED"


class StorageFailed(IntegrityError):
    """The disk refused (full, read-only, gone). The message says what was recorded before, if anything."""

    code = "STORAGE_FAILED"
