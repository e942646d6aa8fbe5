"""Runs: one candidate's way through the phases, with a directory of its files."""

from forge.domain.digest import Digest
from forge.events.fact import Fact


class RunStarted(Fact):
    """A run directory was opened for a task."""

    run_id: str
    task_id: str
    command: str
    policy_sha256: Digest


class RunSealed(Fact):
    """The run ended. Its directory is read-only, and a manifest lists the digest of every file in it."""

    run_id: str
    outcome: str
    """Outcome: promoted, denied, rejected or failed."""
    manifest_sha256: Digest


class RunAborted(Fact):
    """The run was closed without an outcome."""

    run_id: str
    reason: str
