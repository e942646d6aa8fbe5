"""Asks a candidate's gates in order, those that take long beside the others: their parts in processes with guests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue

from forge.lab.asked_gates import GateAsked, ask, ask_alone, together
from forge.lab.asked_part import answered, asked_candidate, asked_part
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.gate import Gate
from forge.lab.job import Job, Progress, processors
from forge.lab.judge_processes import SERVER, JudgeProcess
from forge.lab.judge_slots import slot
from forge.sandbox.stage import Stage


@dataclass(frozen=True)
class _Part:
    """One part of a gate, and its answer."""

    gate: Gate
    place: int
    answer: Future[GateAsked] = field(default_factory=Future)

    def settle(self, ask: Callable[[], GateAsked]) -> None:
        """Ask it; an exception is its answer, too."""
        try:
            self.answer.set_result(ask())
        except BaseException as error:
            self.answer.set_exception(error)
            raise


class OwnGuests:
    """Asks gates in guests of their own, one after the other or beside the candidate's first guest.

    Questions follow from the job's seed and the part's name, so they are the same in any guest. A busy machine has no
    room for many guests: the first one is asked what no process has begun when its own gates are done.
    Leave it as a context manager: processes that still ask then are ended, since nothing waits for their answers.
    """

    def __init__(self, job: Job, stage: Stage, files: Mapping[str, bytes], progress: Progress) -> None:
        self._job, self._stage, self._files, self._progress = job, stage, files, progress
        self._begun: dict[str, list[_Part]] = {}
        self._waiting = SimpleQueue[_Part]()
        self._processes: list[JudgeProcess] = []
        self._lock, self._unwanted = threading.Lock(), False
        self._pool = ThreadPoolExecutor(processors())

    def __enter__(self) -> OwnGuests:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._unwanted = True
            processes = list(self._processes)
        for process in processes:
            process.end()
        self._pool.shutdown()
        for part in (one for parts in self._begun.values() for one in parts):
            part.answer.cancel()

    def ask_all(
        self, kernel: LoadedKernel, gates: Sequence[Gate], *, beside: Sequence[Gate], start_others: Callable[[], None]
    ) -> dict[str, GateAsked]:
        """Ask the gates in order, those of `beside` side by side; return the answers to the others.

        A refusal ends it, also one beside that has come so far by a gate before. `start_others` is called at the
        first gate that doesn't run early.
        """
        with slot(lambda: False) if beside else nullcontext():  # counts itself, if there is room
            answers = self._ask_own(kernel, gates, beside, start_others)
            refused = (
                place for place, gate in enumerate(gates) if gate.name in answers and answers[gate.name].refuses
            )
            refusing = next(refused, None)
            self._ask_the_rest(kernel, gates[:refusing], alone=refusing is not None)
        return answers

    def _ask_own(
        self, kernel: LoadedKernel, gates: Sequence[Gate], beside: Sequence[Gate], start_others: Callable[[], None]
    ) -> dict[str, GateAsked]:
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

    def _ask_the_rest(self, kernel: LoadedKernel, gates: Sequence[Gate], *, alone: bool) -> None:
        """Ask the parts of these gates that no process has begun, unless the candidate is refused meanwhile.

        After a refusal the first guest can't be asked any more, so each is asked alone.
        """
        while not self._has_refused(gates) and (part := self._next()) is not None and part.gate in gates:
            ask_one = self._ask_alone if alone else self._ask_in_turn
            part.settle(partial(ask_one, kernel, part.gate.parts[part.place]))

    def _ask_in_turn(self, kernel: LoadedKernel, gate: Gate) -> GateAsked:
        """Ask a gate in the guest of the gates before, or in a guest of its own, which an interpreter never gets."""
        if gate.own_guest and self._job.runner.makes_many_calls:
            return self._ask_alone(kernel, gate)
        self._progress(gate.name)
        return ask(kernel, gate)

    def _ask_alone(self, kernel: LoadedKernel, gate: Gate) -> GateAsked:
        self._progress(gate.name)
        return ask_alone(self._job, self._stage, gate, kernel.tuner.allowed)

    def begin(self, gates: Sequence[Gate], *, configurations: int) -> None:
        """Start to ask the gates, each part in a process of its own while slots are free, or several in one.

        `configurations` is the most that an autotuned kernel has.
        """
        for gate in gates:
            self._progress(f"{gate.name}, beside others")
            self._begun[gate.name] = [_Part(gate, place) for place in range(len(gate.parts))]
        parts = [part for gate in gates for part in self._begun[gate.name]]
        for part in parts:
            self._waiting.put(part)
        candidate = asked_candidate(self._job, self._files, configurations) if parts else b""
        for _ in parts[: processors()]:
            self._pool.submit(self._ask_parts, candidate)

    def _has_refused(self, gates: Iterable[Gate]) -> bool:
        """Whether the candidate is refused by an answer so far to one of the gates that were begun."""
        asked = (part.answer for gate in gates for part in self._begun.get(gate.name, ()))
        return any(answer.done() and answer.result().refuses for answer in asked)

    def answer(self, gate: Gate) -> GateAsked:
        """Wait for the answer to a gate that was begun."""
        answers = [part.answer for part in self._begun[gate.name]]
        if not all(answer.done() for answer in answers):
            self._progress(gate.name)
        return together(answer.result() for answer in answers)

    def _ask_parts(self, candidate: bytes) -> None:
        """Ask parts that wait in a process of its own, once a slot is free; a fault is the answer to all others."""
        try:
            with slot(lambda: not (self._unwanted or self._waiting.empty())) as held:
                if held:
                    self._ask_in_a_process(candidate)
        except BaseException as error:
            while (part := self._next()) is not None:
                part.answer.set_exception(error)
            raise

    def _ask_in_a_process(self, candidate: bytes) -> None:
        with JudgeProcess(SERVER, self._stage.prepare(self._job.threads)) as process:
            self._note(process)
            process.tell(candidate)
            while not self._unwanted and (part := self._next()) is not None:
                part.settle(partial(_ask_process, process, part))

    def _next(self) -> _Part | None:
        try:
            return self._waiting.get_nowait()
        except Empty:
            return None

    def _note(self, process: JudgeProcess) -> None:
        with self._lock:
            self._processes.append(process)
            unwanted = self._unwanted
        if unwanted:
            process.end()


def _ask_process(process: JudgeProcess, part: _Part) -> GateAsked:
    return answered(process.ask(asked_part(part.gate, part.place)))
