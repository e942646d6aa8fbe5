"""Runs: one candidate's way through the phases, with a directory of its files."""

from typing import ClassVar

from forge.domain.digest import Digest
from forge.events.fact import Fact, Group


class RunStarted(Fact):
    """A run directory was opened for a task."""

    TYPE: ClassVar[str] = "RunStarted"
    GROUP: ClassVar[Group] = "run"
    run_id: str
    task_id: str
    command: str
    policy_sha256: Digest

    def stream(self) -> str:
        """Return the run's stream."""
        return f"run:{self.run_id}"


class RunSealed(Fact):
    """The run ended. Its directory is read-only, and a manifest lists the digest of every file in it."""

    TYPE: ClassVar[str] = "RunSealed"
    GROUP: ClassVar[Group] = "run"
    run_id: str
    outcome: str
    """Outcome: promoted, denied, rejected or failed."""
    manifest_sha256: Digest

    def stream(self) -> str:
        """Return the run's stream."""
        return f"run:{self.run_id}"


class RunAborted(Fact):
    """The run was closed without an outcome."""

    TYPE: ClassVar[str] = "RunAborted"
    GROUP: ClassVar[Group] = "run"
    run_id: str
    reason: str

    def stream(self) -> str:
        """Return the run's stream."""
        return f"run:{self.run_id}"
