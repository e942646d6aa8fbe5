"""Runs a reference file in one guest with a sandbox of its own, on the processor or on a GPU.

The guest is never the candidate's. It returns bytes in forms that the host laid out.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forge.domain.device import Device
from forge.domain.evidence import Isolation
from forge.domain.own_operation import Contract
from forge.domain.policy import Policy
from forge.domain.tensors import TORCH_NAMES, ElementType
from forge.lab.calls.refusal import require_verdict
from forge.lab.definitions.contract_file import CONTRACT_FILE, contract_file
from forge.lab.job import STILL_S
from forge.languages import LANGUAGES
from forge.sandbox.arena import Arena, Form, Slot, SlotSet
from forge.sandbox.limits import Limits
from forge.sandbox.reply import Refused
from forge.sandbox.session import GuestFunction, Session
from forge.sandbox.stage import Program, Stage

if TYPE_CHECKING:
    import torch

Function = Literal["module", "module_fp64", "module_inputs", "module_state"]
SESSION_LIMIT_S = 7200.0
"""Seconds for which the host waits for answers in one session, at most. Chosen: as long as a guest's own processor
time (`GUEST_CPU_S`)."""
Tensors = tuple["torch.Tensor", ...]


@dataclass(frozen=True)
class AnsweringDevice:
    """The device on which a reference runs."""

    device: Literal["cpu", "cuda"] = "cpu"
    gpu: Device | None = None
    """The GPU that its guest sees, if it runs on one."""


HERE = AnsweringDevice()
"""The processor."""


class ReferenceGuest:
    """An open session with a reference in one place."""

    def __init__(
        self,
        contract: Contract,
        source: bytes,
        functions: Sequence[Function],
        *,
        place: AnsweringDevice,
        policy: Policy,
        isolation: Isolation,
        threads: int,
        arena_bytes: int,
    ) -> None:
        self.failed: Refused | None = None
        """Reason why the reference couldn't be loaded, if it couldn't."""
        self.answering_ns = 0
        """Nanoseconds of all calls so far, without those in which the guest waited for a processor."""
        self._functions = tuple(functions)
        stage = Stage(_program(contract, source, place), isolation)
        self._open = ExitStack()
        self._open.callback(stage.remove)
        self._arena = Arena(arena_bytes)
        self._open.callback(self._arena.close)
        self._operands: tuple[Slot, ...] = ()
        self._laid_out: tuple[tuple[tuple[Form, ...], tuple[Form, ...]], SlotSet] | None = None
        """Forms of the last call's operands and results, and their places."""
        self._lock = threading.RLock()
        """Lock for the session: guests of one measurement are opened in parallel, and each asks for operands."""
        limits = _limits(policy, place)
        try:
            self._session = self._open.enter_context(Session(stage, self._arena, limits=limits, threads=threads))
            answer = self._session.load(
                tuple(GuestFunction("reference.py", contract.entry, wrap=one) for one in self._functions)
            )
            if isinstance(answer, Refused):
                require_verdict(answer)
                self.failed = answer
        except BaseException:
            self._open.close()
            raise

    def close(self) -> None:
        """End the guest with its sandbox."""
        self._open.close()

    def holds(self, inputs: Tensors) -> bool:
        """Return whether the last call, which got these operands, hasn't written to them."""
        return all(map(self._arena.holds, self._operands, inputs))

    def ask(self, function: Function, inputs: Tensors, results: Sequence[Form]) -> Tensors | Refused:
        """Call one function once; return its results in these forms, or why there are none."""
        if self.failed is not None:
            return self.failed
        with self._lock:
            return self._exchange(function, inputs, results)

    def _exchange(self, function: Function, inputs: Tensors, results: Sequence[Form]) -> Tensors | Refused:
        slots = self._places(tuple(Form(tuple(one.shape), _element(one)) for one in inputs), tuple(results))
        self._operands = slots.inputs
        for slot, tensor in zip(slots.inputs, inputs, strict=True):
            self._arena.write(slot, tensor.cpu())
        for slot in slots.outputs:
            self._arena.poison(slot)
        answer = self._session.release(self._functions.index(function), 0, 1, ())
        self.answering_ns += self._session.undelayed_ns
        if isinstance(answer, Refused):
            self._laid_out = None  # the guest may have had no room
            if function != "module_fp64" or answer.reason.code != "OUT_OF_MEMORY":  # fewer samples may have room
                require_verdict(answer)
            return answer
        return tuple(map(self._arena.read, slots.outputs))

    def _places(self, operands: tuple[Form, ...], results: tuple[Form, ...]) -> SlotSet:
        """Return the places of a call's operands and results; the guest is told of them if they are others."""
        if self._laid_out is not None and self._laid_out[0] == (operands, results):
            return self._laid_out[1]
        (slots,) = self._arena.lay_out(1, operands, results)
        self._session.lay_out((slots,), scalars=0)
        self._laid_out = (operands, results), slots
        return slots


def _program(contract: Contract, source: bytes, place: AnsweringDevice) -> Program:
    return Program(
        language=LANGUAGES["torch"],
        files={"reference.py": source, CONTRACT_FILE: contract_file(contract)},
        device=place.device,
        gpu=place.gpu,
        warm=True,
    )


def _limits(policy: Policy, place: AnsweringDevice) -> Limits:
    return Limits(
        wall_s=SESSION_LIMIT_S,
        cpu_s=int(SESSION_LIMIT_S),
        reply_cpu_s=policy.verify_limit_s,
        still_s=STILL_S,
        waits_for_device=place.device == "cuda",
        memory_bytes=policy.memory_limit_bytes,
    )


def _element(tensor: torch.Tensor) -> ElementType:
    name = str(tensor.dtype).removeprefix("torch.")
    return next(element for element, known in TORCH_NAMES.items() if known == name)
