"""Runs a reference file in a guest: outputs in the task's type and in fp64, its weights, its own inputs.

The guest has a sandbox of its own, never the candidate's. It returns bytes in forms that the host laid out.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

from forge.domain.evidence import Isolation
from forge.domain.input_kind import END_KINDS, EndKind
from forge.domain.own_operation import Contract, sizes_at
from forge.domain.policy import Policy
from forge.domain.tensors import TORCH_NAMES, UNIT_ROUNDOFF, DType, ElementType
from forge.errors import EnvironmentUnfit
from forge.lab.definitions.contract_file import CONTRACT_FILE, contract_file
from forge.lab.job import STILL_S
from forge.languages import LANGUAGES
from forge.sandbox.arena import Arena, Form, Slot
from forge.sandbox.limits import Limits
from forge.sandbox.reply import Refused
from forge.sandbox.session import GuestFunction, Session
from forge.sandbox.stage import Program, Stage

if TYPE_CHECKING:
    import torch

Function = Literal["module", "module_fp64", "module_inputs", "module_state"]
FUNCTIONS: tuple[Function, ...] = ("module", "module_state", "module_inputs", "module_fp64")
Pattern = Literal["plain", EndKind]
PATTERNS: tuple[Pattern, ...] = ("plain", *END_KINDS)
"""Patterns of random numbers in the order of the guest's, which goes by the place."""
SESSION_LIMIT_S = 7200.0
"""Seconds for which the host waits for answers in one session, at most."""
KEPT_ANSWERS = 4
"""Number of remembered answers, since one judgement asks for the same one several times."""
SAME_ANSWER = 1e-5
"""Distance between two answers to one question, over the root mean square, up to which they are one answer."""
Tensors = tuple["torch.Tensor", ...]


class Answers:
    """An open session with a reference; use as a context manager."""

    def __init__(
        self,
        contract: Contract,
        source: bytes,
        *,
        policy: Policy,
        isolation: Isolation,
        threads: int,
        arena_bytes: int,
    ) -> None:
        self.contract = contract
        self.failed: Refused | None = None
        """Reason why the reference couldn't be loaded, if it couldn't."""
        files = {"reference.py": source, CONTRACT_FILE: contract_file(contract)}
        stage = Stage(Program(language=LANGUAGES["torch"], files=files, warm=True), isolation)
        self._open = ExitStack()
        self._open.callback(stage.remove)
        self._arena = Arena(arena_bytes)
        self._open.callback(self._arena.close)
        self._operands: tuple[Slot, ...] = ()
        self._lock = threading.RLock()
        """Lock for the session: guests of one measurement are opened in parallel, and each asks for operands."""
        self._kept: deque[tuple[Function, Tensors, Tensors]] = deque(maxlen=KEPT_ANSWERS)
        limits = Limits(
            wall_s=SESSION_LIMIT_S,
            cpu_s=int(SESSION_LIMIT_S),
            reply_cpu_s=policy.verify_limit_s,
            still_s=STILL_S,
            memory_bytes=policy.memory_limit_bytes,
        )
        try:
            self._session = self._open.enter_context(Session(stage, self._arena, limits=limits, threads=threads))
            wanted = FUNCTIONS if contract.wide else FUNCTIONS[:-1]
            answer = self._session.load(
                tuple(GuestFunction("reference.py", contract.entry, wrap=one) for one in wanted)
            )
            self.failed = answer if isinstance(answer, Refused) else None
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def outputs(self, inputs: Tensors, shape: Mapping[str, int], *, wide: bool) -> Tensors | Refused:
        """Return the reference's outputs for operands and weights, in the task's type or in fp64."""
        with self._lock:
            return self._outputs("module_fp64" if wide else "module", inputs, shape)

    def _outputs(self, function: Function, inputs: Tensors, shape: Mapping[str, int]) -> Tensors | Refused:
        for kept_function, kept_inputs, outputs in self._kept:
            same = len(kept_inputs) == len(inputs)
            if kept_function == function and same and all(a is b for a, b in zip(kept_inputs, inputs, strict=True)):
                return outputs
        found = self.asked(function, inputs, shape)
        if not isinstance(found, Refused):
            self._kept.append((function, inputs, found))
        return found

    def asked(self, function: Function, inputs: Tensors, shape: Mapping[str, int]) -> Tensors | Refused:
        """Call the reference once, without using remembered answers."""
        floats: ElementType = "fp64" if function == "module_fp64" else self.contract.dtype
        forms = tuple(Form(sizes_at(one.axes, shape), one.element or floats) for one in self.contract.results)
        return self._ask(function, inputs, forms)

    def operands_unchanged(self, inputs: Tensors) -> bool:
        """Return whether the last call, which got these operands, hasn't written to them."""
        return all(map(self._arena.holds, self._operands, inputs))

    def state(self, seed: int) -> Tensors:
        """Return the module's initial weights under a seed; raise EnvironmentUnfit."""
        weights = self.contract.weights
        forms = tuple(Form(one.sizes, one.element or self.contract.dtype) for one in weights)
        return self._or_unfit(self._ask("module_state", (_seed(seed),), forms)) if weights else ()

    def generated(self, seed: int, pattern: Pattern = "plain") -> Tensors:
        """Return what the file's own get_inputs draws under a seed; raise EnvironmentUnfit."""
        return self._or_unfit(self.try_generated(seed, pattern))

    def try_generated(self, seed: int, pattern: Pattern = "plain") -> Tensors | Refused:
        """Return what the file's own get_inputs draws under a seed, or why it doesn't.

        In all patterns but `plain`, its random numbers reach the ends of their ranges; forge/guest/reach.py has them.
        """
        forms = tuple(Form(one.sizes, one.element or self.contract.dtype) for one in self.contract.tensors)
        return self._ask("module_inputs", (_seed(seed), _seed(PATTERNS.index(pattern))), forms)

    def _or_unfit(self, answer: Tensors | Refused) -> Tensors:
        if isinstance(answer, Refused):
            raise EnvironmentUnfit(
                f"the reference fails on this machine: {answer.reason.message}; {answer.log[-300:]}"
            )
        return answer

    def _ask(self, function: Function, inputs: Tensors, results: Sequence[Form]) -> Tensors | Refused:
        if self.failed is not None:
            return self.failed
        with self._lock:
            return self._exchange(function, inputs, results)

    def _exchange(self, function: Function, inputs: Tensors, results: Sequence[Form]) -> Tensors | Refused:
        operands = tuple(Form(tuple(one.shape), _element(one)) for one in inputs)
        (slots,) = self._arena.lay_out(1, operands, tuple(results))
        self._operands = slots.inputs
        answer = self._session.lay_out((slots,), scalars=0)
        if isinstance(answer, Refused):
            return answer
        for slot, tensor in zip(slots.inputs, inputs, strict=True):
            self._arena.write(slot, tensor.cpu())
        for slot in slots.outputs:
            self._arena.poison(slot)
        answer = self._session.release(FUNCTIONS.index(function), 0, 1, ())
        return answer if isinstance(answer, Refused) else tuple(map(self._arena.read, slots.outputs))


def rms(tensor: torch.Tensor) -> float:
    """Return the root mean square of a tensor's finite values."""
    finite = tensor.double()[tensor.isfinite()]
    return math.sqrt(float(finite.square().mean())) if finite.numel() else 0.0


def relative_error(got: torch.Tensor, exact: torch.Tensor, *, dtype: DType) -> float:
    """Return the largest difference of floats, over the root mean square of the exact ones.

    Below fp32 the result's own rounding doesn't count: it hides all others, and the bound allows for it separately.
    """
    if not got.is_floating_point() or not got.numel():
        return 0.0
    size = rms(exact)
    beyond = (got.double() - exact.double()).abs()
    if dtype != "fp32":
        beyond.sub_(exact.double().abs(), alpha=UNIT_ROUNDOFF[dtype]).clamp_(min=0)
    return float(beyond.max()) / size if size > 0 else 0.0


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two answers have the same values, with NaN in the same places."""
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two answers are equal, or differ at most as another order of summation makes them."""
    if equal(one, other):
        return True
    return one.is_floating_point() and bool((one.double() - other.double()).abs().max() <= SAME_ANSWER * rms(one))


def _seed(seed: int) -> torch.Tensor:
    import torch

    return torch.tensor(seed, dtype=torch.int64)


def _element(tensor: torch.Tensor) -> ElementType:
    name = str(tensor.dtype).removeprefix("torch.")
    return next(element for element, known in TORCH_NAMES.items() if known == name)
