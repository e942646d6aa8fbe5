"""Puts a gate's question to a loaded candidate: in the guest of the gates before, in its own, or beside others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from forge.lab.calls.load import loaded
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding
from forge.lab.gates.configurations import with_configuration
from forge.lab.gates.gate import Gate
from forge.lab.job import Job, Progress
from forge.sandbox.session import Session
from forge.sandbox.stage import Stage


@dataclass(frozen=True, kw_only=True)
class GateAsked:
    """What a gate found, and from which seeds."""

    finding: Finding
    seeds: tuple[int, ...] = ()
    saw_held_out: bool = False
    """Whether the guest was asked at a held-out shape, so that its words may name the shape."""


def ask(kernel: LoadedKernel, gate: Gate) -> GateAsked:
    """Ask the gate's question in a guest that is loaded."""
    before = len(kernel.seeds)
    finding = gate.examine(kernel)
    if isinstance(finding, Failed):
        finding = with_configuration(kernel, finding)
    return GateAsked(finding=finding, seeds=tuple(kernel.seeds[before:]), saw_held_out=kernel.saw_held_out)


class OwnGuests:
    """Asks gates in guests of their own, one after the other or beside the candidate's first guest.

    Questions follow from the job's seed and the gate's name, so they are the same in any guest. Leave it as a context
    manager: guests that are still asked then are ended, since their answers aren't wanted any more.
    """

    def __init__(self, job: Job, stage: Stage, progress: Progress) -> None:
        self._job, self._stage, self._progress = job, stage, progress
        self._begun: dict[str, Future[GateAsked]] = {}
        self._sessions: list[Session] = []
        self._lock, self._unwanted = threading.Lock(), False
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> OwnGuests:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._unwanted = True
            sessions = list(self._sessions)
        for session in sessions:
            session.end()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def begin(self, gates: Sequence[Gate], *, configurations: int) -> None:
        """Start to ask the gates, each in a thread; `configurations` is the most that an autotuned kernel has."""
        self._pool = ThreadPoolExecutor(max(1, len(gates)))
        for gate in gates:
            self._progress(f"{gate.name}, beside others")
            self._begun[gate.name] = self._pool.submit(self.ask, gate, configurations)

    def has_begun(self, gate: Gate) -> bool:
        """Whether the gate is asked beside the others."""
        return gate.name in self._begun

    def answer(self, gate: Gate) -> GateAsked:
        """Wait for the answer to a gate that was begun."""
        return self._begun[gate.name].result()

    def ask(self, gate: Gate, configurations: int) -> GateAsked:
        """Ask the gate's question in a new guest."""
        job = self._job
        with loaded(job, self._stage, job.gate_limits, label=gate.name, fills_memory=True) as kernel:
            if isinstance(kernel, Failed):
                return GateAsked(finding=kernel)
            kernel.tuner.allow_for(configurations)
            self._note(kernel.session)
            return ask(kernel, gate)

    def _note(self, session: Session) -> None:
        with self._lock:
            self._sessions.append(session)
            unwanted = self._unwanted
        if unwanted:
            session.end()
