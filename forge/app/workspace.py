"""Opens and changes a workspace: the ledger, the run directories, the published registry.

Blobs are written before the events that name them: a crash leaves unused bytes, never a missing blob. A run's files
are copies for people. They are written after their event, so that a refused event leaves none. If a crash prevents
that, they are written from blobs and events when the workspace is recovered, and before a run is sealed.
"""

import os
import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from forge.app.stored import policy_stamp
from forge.app.stored.conflicts import add_recorded_events, naming_the_first
from forge.app.stored.keys_place import keys_folder
from forge.app.stored.new_ledger import make_ledger
from forge.app.stored.own_operation import make_task_known
from forge.app.stored.policy_file import load_policy
from forge.app.stored.publication import Publication
from forge.app.stored.run_documents import of_state
from forge.app.stored.run_files import put_back, recorded_digests
from forge.app.user.home import LEDGER_FILE, REGISTRY_FOLDER, RUNS_FOLDER
from forge.app.user.user import command_line_actor
from forge.domain.digest import canonical
from forge.domain.environment import Environment
from forge.domain.policy import Policy
from forge.errors import StorageFailed, UsageError, WorkspaceNotFound
from forge.events import EnvironmentCaptured, Event, RunSealed
from forge.ledger.blobs import BlobStore
from forge.ledger.crash_marker import Presence
from forge.ledger.failures import storage_errors
from forge.ledger.ids import uuid7
from forge.ledger.runs.directory import RunDirectory
from forge.ledger.signatures.checkpoints import DECISIVE, issue, require_continued, sign_text, signing_state
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.store import Ledger
from forge.ledger.writing import Appended
from forge.pipeline.outcome import Outcome
from forge.projections import runs
from forge.projections.run_lookup import find_run

SIGNER = "system:signer"
"""Actor of checkpoints."""
ORIGIN_LIMIT = 200
"""Longest origin of a ledger, in characters. Chosen; each checkpoint holds the origin in one line."""

# Set before torch is first imported: idle workers of this process must sleep, not spin, while a guest is timed.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def now() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """Return a new event id."""
    return uuid7(int(now().timestamp() * 1000), os.urandom(10))


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """An open workspace; use as a context manager."""

    home: Path
    ledger: Ledger
    keyring: Keyring
    blobs: BlobStore
    policy: Policy
    rng: random.Random
    presence: Presence | None
    """Marks this process as at work; None if it only reads."""
    acts_as: str | None = None
    """Actor of a caller over HTTP or MCP; None for the person at the command line."""
    left_out: frozenset[str] = frozenset()
    """Environments whose evidence isn't in an answer about the history."""
    decided: frozenset[str] | None = None
    """States of the runs whose figures are in an answer about the history; None: those of all runs."""

    @classmethod
    def create(cls, home: Path, *, origin: str) -> "Workspace":
        """Make a new workspace; raise UsageError if there is one already."""
        path = home / LEDGER_FILE
        if path.exists():
            raise UsageError(
                f"{str(home)!r} is a workspace already: its ledger is never replaced",
                hint=f"forge run list --home {home}",
            )
        if not (1 <= len(origin) <= ORIGIN_LIMIT and origin.isprintable()):
            raise UsageError(
                f"bad origin {origin[:ORIGIN_LIMIT]!r}: expected 1 to {ORIGIN_LIMIT} printable characters"
            )
        load_policy(home)
        try:
            for folder in (home, home / RUNS_FOLDER, home / REGISTRY_FOLDER):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"can't make a workspace at {str(home)!r} ({error.strerror}): expected a folder"
            ) from error
        make_ledger(path, keys_folder(home), origin=origin, now=now, new_id=new_id)
        workspace = cls.open(home)
        workspace.publish()
        return workspace

    @classmethod
    def open(cls, home: Path, *, read_only: bool = False, acts_as: str | None = None) -> "Workspace":
        """Open a workspace, only for reading if nothing can be written; raise WorkspaceNotFound or LedgerCorrupt."""
        path = home / LEDGER_FILE
        if home.exists() and not home.is_dir():
            is_beside = (home.parent / LEDGER_FILE).exists()
            raise WorkspaceNotFound(
                f"{str(home)!r} is a file: expected the folder that has {LEDGER_FILE}",
                hint=f"forge run list --home {home.parent}" if is_beside else "forge init --help",
            )
        if not path.exists():
            raise WorkspaceNotFound(
                f"{str(home)!r} is not a workspace: it has no {LEDGER_FILE}", hint=f"forge init {home}"
            )
        policy = load_policy(home)
        policy_stamp.remember(home)
        read_only = read_only or not os.access(home, os.W_OK)
        ledger = Ledger.open(path, now=now, new_id=new_id, read_only=read_only)
        try:
            keyring = Keyring(keys_folder(home), signing_state(ledger).name)
            require_continued(ledger, keyring)
            with storage_errors(path):
                presence = None if read_only else Presence(ledger.path)
        except BaseException:
            ledger.close()
            raise
        rng, blobs = random.SystemRandom(), BlobStore(home / RUNS_FOLDER / "cas")
        return cls(
            home=home,
            ledger=ledger,
            keyring=keyring,
            blobs=blobs,
            policy=policy,
            rng=rng,
            presence=presence,
            acts_as=acts_as,
        )

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None = None, *_: object) -> None:
        try:
            if isinstance(error, StorageFailed):
                add_recorded_events(error, self.ledger.recorded_seq)
            elif kind is None and self.presence is not None:
                self.catch_up()
        except StorageFailed as refused:
            add_recorded_events(refused, self.ledger.recorded_seq)
            raise
        finally:
            self.ledger.close()
            if self.presence is not None:
                self.presence.leave()

    def catch_up(self) -> bool:
        """Publish and sign the events since the last publication; return whether there were any.

        A revocation reaches readers before anything else is done, because a process may be killed at any point.
        """
        behind = not self.publication.is_current()
        if behind:
            self.publish()
            self.sign_decisions()
        if not self.publication.is_current():
            self.publish()
        elif not self.publication.has_tables():  # a clone of a repository has none: they are derived
            with suppress(StorageFailed):
                self.publish()
        return behind

    @property
    def runs_root(self) -> Path:
        """Return the folder of run directories and blobs."""
        return self.home / RUNS_FOLDER

    @property
    def registry_root(self) -> Path:
        """Return the folder of published projections."""
        return self.home / REGISTRY_FOLDER

    @property
    def actor(self) -> str:
        """Return the actor who asks."""
        return self.acts_as or command_line_actor()

    def run_states(self) -> runs.RunsState:
        """Return the state of every run, folded from the ledger."""
        return runs.fold(runs.EMPTY, self.ledger.read())

    def find_run(self, name: str) -> runs.RunState:
        """Return the run that `name` means: its id or its beginning, `last`, `last-N` or `r12`; raise RunNotFound."""
        found = find_run(self.ledger, name)
        if found.task is not None:
            make_task_known(self.blobs, found.task.event.task)
        return found

    def directory(self, run_id: str) -> RunDirectory:
        """Return a run's directory; make it if a crash prevented that."""
        directory = RunDirectory(self.runs_root, run_id)
        return directory if directory.path.exists() else RunDirectory.create(self.runs_root, run_id)

    def record(
        self,
        outcome: Outcome,
        *,
        run_id: str,
        key: str,
        causation_id: str | None = None,
        actor: str | None = None,
    ) -> Appended:
        """Store what a phase made, append its events in one transaction, then write the run's files."""
        self.blobs.put_all(outcome.blobs)
        with naming_the_first(self.ledger, run_id=run_id, key=key):
            appended = self.append(outcome.events, run_id=run_id, key=key, causation_id=causation_id, actor=actor)
        directory = self.directory(run_id)
        if not (appended.replayed and directory.is_sealed):
            for name, content in outcome.files.items():
                directory.write(name, content)
            directory.make_durable(outcome.files)
        return appended

    def append(
        self,
        events: Iterable[Event],
        *,
        run_id: str,
        key: str,
        causation_id: str | None = None,
        actor: str | None = None,
        expected: Mapping[str, int] | None = None,
    ) -> Appended:
        """Append events that name no new blobs; raise ConcurrencyConflict for a stream of another version."""
        return self.ledger.append(
            tuple(events),
            actor=actor or self.actor,
            correlation_id=run_id,
            causation_id=causation_id,
            idempotency_key=key,
            expected=expected,
        )

    def append_at(self, event: Event, version: int, *, actor: str | None = None) -> Appended:
        """Append an event of no run; raise ConcurrencyConflict unless its stream is still at this version."""
        stream = event.stream()
        return self.ledger.append(
            (event,), actor=actor or self.actor, correlation_id=stream, expected={stream: version}
        )

    def record_environment(self, environment: Environment, *, run_id: str) -> None:
        """Record the description of a machine, unless it is recorded."""
        event = EnvironmentCaptured(
            environment=environment,
            env_sha256=environment.env_sha256,
            perf_key=environment.perf_key,
            abi_key=environment.abi_key,
        )
        if self.ledger.stream_version(event.stream()) == 0:
            self.append((event,), run_id=run_id, key=f"env:{environment.env_sha256}")

    def seal(self, run_id: str, outcome: str) -> None:
        """Seal a run's directory and record it; a killed call can be repeated."""
        run = self.find_run(run_id)
        self.put_back(run)
        sealed = self.directory(run_id).seal(recorded_digests(of_state(run)))
        event = RunSealed(run_id=run_id, outcome=outcome, manifest_sha256=sealed.manifest_sha256)
        self.append((event,), run_id=run_id, key=f"seal:{run_id}")
        self.sign_decisions()
        self.publish()

    def put_back(self, run: runs.RunState) -> None:
        """Write into a run's open folder what was recorded of it."""
        put_back(self.directory(run.run_id), run, self.blobs)

    def sign_decisions(self) -> None:
        """Issue a checkpoint if a decision or a seal came after the last one, and this workspace has the key."""
        if not self._has_key():
            return
        signed_seq = last.size if (last := self.keyring.last) else 0
        if any(True for _ in self.ledger.rows(after_seq=signed_seq, types=DECISIVE, limit=1)):
            issue(self.ledger, self.keyring, actor=SIGNER)

    def _has_key(self) -> bool:
        public = signing_state(self.ledger).public
        return public is not None and self.keyring.has(public)

    def signed_size(self, seq: int) -> int | None:
        """Return the size of the last checkpoint, if it covers the event; None if the key isn't here."""
        last = self.keyring.last
        return last.size if last and last.size >= seq else None

    @property
    def publication(self) -> Publication:
        """Return the publication of the ledger."""
        return Publication(
            self.registry_root,
            self.ledger,
            self.blobs,
            sign=lambda text: sign_text(self.ledger, self.keyring, text),
            signs=self._has_key,
            left_out=self.left_out,
            decided=self.decided,
        )

    @property
    def published_seq(self) -> int:
        """Return the event up to which the registry is published; 0 if none can be read."""
        return self.publication.seq

    def publish(self) -> None:
        """Bring every published projection up to the ledger's head."""
        self.publication.bring_up()

    def keep_policy(self) -> str:
        """Store the policy and return its digest."""
        return self.blobs.put(canonical(self.policy))
