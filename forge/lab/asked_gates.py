"""Puts a gate's question to a loaded candidate: in the guest of the gates before, in its own, or beside others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from forge.lab.calls.load import loaded
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, joined
from forge.lab.gates.configurations import with_configuration
from forge.lab.gates.gate import Gate
from forge.lab.job import Job, Progress, processors
from forge.sandbox.session import Session
from forge.sandbox.stage import Stage


@dataclass(frozen=True, kw_only=True)
class GateAsked:
    """What a gate found, and from which seeds."""

    finding: Finding
    seeds: tuple[int, ...] = ()
    saw_held_out: bool = False
    """Whether the guest was asked at a held-out shape, so that its words may name the shape."""

    @property
    def refuses(self) -> bool:
        """Whether the candidate is refused."""
        return isinstance(self.finding, Failed)


def ask(kernel: LoadedKernel, gate: Gate) -> GateAsked:
    """Ask all parts of the gate's question in a guest that is loaded, up to the first refusal."""
    return _together(_ask_part(kernel, part) for part in gate.parts)


def _ask_part(kernel: LoadedKernel, part: Gate) -> GateAsked:
    kernel.begin(part.name)
    before = len(kernel.seeds)
    finding = part.examine(kernel)
    if isinstance(finding, Failed):
        finding = with_configuration(kernel, finding)
    return GateAsked(finding=finding, seeds=tuple(kernel.seeds[before:]), saw_held_out=kernel.saw_held_out)


def _together(answers: Iterable[GateAsked]) -> GateAsked:
    """Return the answers to a question's parts as one; none is asked for after a refusal."""
    taken: list[GateAsked] = []
    for answer in answers:
        taken.append(answer)
        if answer.refuses:
            break
    return GateAsked(
        finding=joined([one.finding for one in taken]),
        seeds=tuple(seed for one in taken for seed in one.seeds),
        saw_held_out=any(one.saw_held_out for one in taken),
    )


class OwnGuests:
    """Asks gates in guests of their own, one after the other or beside the candidate's first guest.

    Questions follow from the job's seed and the part's name, so they are the same in any guest. Leave it as a context
    manager: guests that are still asked then are ended, since their answers aren't wanted any more.
    """

    def __init__(self, job: Job, stage: Stage, progress: Progress) -> None:
        self._job, self._stage, self._progress = job, stage, progress
        self._begun: dict[str, list[Future[GateAsked]]] = {}
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

    def ask_all(
        self, kernel: LoadedKernel, gates: Sequence[Gate], *, beside: Sequence[Gate], start_others: Callable[[], None]
    ) -> dict[str, GateAsked]:
        """Ask the gates in order, those of `beside` side by side; return the answers to the others.

        A refusal ends it, also one beside that has come so far by a gate before. `start_others` is called at the
        first gate that doesn't run early.
        """
        first_late = next(gate for gate in gates if not gate.runs_early)
        first_in_company = next(gate for gate in gates if not gate.runs_alone)
        answers: dict[str, GateAsked] = {}
        for place, gate in enumerate(gates):
            if gate is first_in_company:
                self.begin(beside, configurations=kernel.tuner.allowed)
            if gate is first_late:
                start_others()
            if self._has_refused(gates[:place]):
                break
            if gate.name not in self._begun:
                answers[gate.name] = self._ask_in_turn(kernel, gate)
                if answers[gate.name].refuses:
                    break
        return answers

    def _ask_in_turn(self, kernel: LoadedKernel, gate: Gate) -> GateAsked:
        """Ask a gate in the guest of the gates before, or in a guest of its own, which an interpreter never gets."""
        self._progress(gate.name)
        if gate.own_guest and self._job.runner.makes_many_calls:
            return self.ask(gate, kernel.tuner.allowed)
        return ask(kernel, gate)

    def begin(self, gates: Sequence[Gate], *, configurations: int) -> None:
        """Start to ask the gates, each part in a thread, as many at once as there are processors.

        `configurations` is the most that an autotuned kernel has.
        """
        self._pool = ThreadPoolExecutor(processors())
        for gate in gates:
            self._progress(f"{gate.name}, beside others")
            self._begun[gate.name] = [self._pool.submit(self.ask, part, configurations) for part in gate.parts]

    def _has_refused(self, gates: Iterable[Gate]) -> bool:
        """Whether the candidate is refused by an answer so far to one of the gates that were begun."""
        asked = (part for gate in gates for part in self._begun.get(gate.name, ()))
        return any(part.done() and part.result().refuses for part in asked)

    def answer(self, gate: Gate) -> GateAsked:
        """Wait for the answer to a gate that was begun."""
        parts = self._begun[gate.name]
        if not all(part.done() for part in parts):
            self._progress(gate.name)
        return _together(part.result() for part in parts)

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
