"""Describes how a guest ended, as Forge's own processes saw it; the guest's own statement isn't used."""

import os
import signal
from dataclasses import dataclass

from forge.sandbox.memory import Excess
from forge.sandbox.processor import WorkExcess
from forge.sandbox.reports import ProgramEnded


@dataclass(frozen=True, kw_only=True)
class Exit:
    """How a guest ended. `returncode` is None if a signal ended it; neither says anything about correctness."""

    returncode: int | None
    signal: int | None
    timed_out: bool
    """Whether it was killed at the end of `wall_s`."""
    flooded: bool
    cpu_s: float | None
    """Processor seconds of the guest and the children it waited for; None if the tree was killed first."""
    max_rss_bytes: int | None
    excess: Excess | WorkExcess | None = None
    """Limit that ended it: of the tree's memory, of the machine's, or of the tree's work."""

    @property
    def from_load(self) -> bool:
        """Whether other work on the machine may have ended it: wall time ran out, or the machine's memory."""
        shared = self.excess in ("still", "waited", "machine") or (self.timed_out and self.excess is None)
        return not self.flooded and shared


def exit_of(
    ended: ProgramEnded | None, *, timed_out: bool, flooded: bool, excess: Excess | WorkExcess | None
) -> Exit:
    """Return the end that Forge's PID 1 reported; if PID 1 was killed first, so was the guest."""
    if ended is None:
        return Exit(
            returncode=None,
            signal=signal.SIGKILL,
            timed_out=timed_out,
            flooded=flooded,
            excess=excess,
            cpu_s=None,
            max_rss_bytes=None,
        )
    code = os.waitstatus_to_exitcode(ended.status)
    return Exit(
        returncode=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=timed_out,
        flooded=flooded,
        excess=excess,
        cpu_s=ended.cpu_s,
        max_rss_bytes=ended.max_rss_bytes,
    )
