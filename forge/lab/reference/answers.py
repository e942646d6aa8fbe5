"""Answers questions by a reference file: outputs in the task's type and in fp64, its weights, its own inputs.

It runs in guests of its own: on the processor, where it draws, and on a GPU if the candidates run there. In fp64 it
is asked for some samples at a time if all together have no room.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

from forge.domain.evidence import Isolation
from forge.domain.input_kind import END_KINDS, EndKind
from forge.domain.own_operation import BATCH, Contract, sizes_at
from forge.domain.policy import Policy
from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, DType, ElementType
from forge.errors import EnvironmentUnfit
from forge.lab.reference.reference_guest import HERE, AnsweringDevice, Function, ReferenceGuest, Tensors
from forge.lab.reference.room import most_set_bytes
from forge.sandbox.arena import Form
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

FUNCTIONS: tuple[Function, ...] = ("module", "module_state", "module_inputs", "module_fp64")
ANSWERING: tuple[Function, ...] = ("module", "module_fp64")
"""Functions that run on the GPU, if there is one; the others draw."""
Pattern = Literal["plain", EndKind]
PATTERNS: tuple[Pattern, ...] = ("plain", *END_KINDS)
"""Patterns of random numbers in the order of the guest's, which goes by the place."""
KEPT_ANSWERS = 4
"""Number of remembered answers, since one judgement asks for the same one several times."""
SAME_ANSWER = 1e-5
"""Distance between two answers to one question, over the root mean square, up to which they are one answer. Another
order of summation in fp32 may make such a difference."""


class Answers:
    """Open sessions with a reference; use as a context manager."""

    def __init__(
        self,
        contract: Contract,
        source: bytes,
        *,
        policy: Policy,
        isolation: Isolation,
        threads: int,
        arena_bytes: int,
        place: AnsweringDevice = HERE,
        most_wide_bytes: int | None = None,
    ) -> None:
        """Open the guests; without `most_wide_bytes` a call in fp64 may take what the policy gives to one call."""
        self.contract = contract
        self._most_wide_bytes = most_set_bytes(policy) if most_wide_bytes is None else most_wide_bytes
        self._samples: int | None = None
        """Number of samples that the reference is asked for at once in fp64; None: all."""
        self._sliced: bool | None = None
        """Whether samples were seen to be independent; None: not tried yet."""
        self._left: str | None = None
        """Reason why the GPU isn't asked any more; None: it is, or there is none."""
        self._lock = threading.RLock()
        self._kept: deque[tuple[Function, Tensors, Tensors]] = deque(maxlen=KEPT_ANSWERS)
        wanted = FUNCTIONS if contract.wide else FUNCTIONS[:-1]
        opened = partial(
            ReferenceGuest,
            contract,
            source,
            policy=policy,
            isolation=isolation,
            threads=threads,
            arena_bytes=arena_bytes,
        )
        self._here = opened(wanted, place=HERE)
        self._there = self._opened_there(partial(opened, [one for one in ANSWERING if one in wanted]), place)

    def _opened_there(self, opened: Callable[..., ReferenceGuest], place: AnsweringDevice) -> ReferenceGuest | None:
        """Open the guest on a GPU, if the reference is to answer on one."""
        if place == HERE or self._here.failed is not None:
            return None
        try:
            return opened(place=place)
        except BaseException:
            self._here.close()
            raise

    def change_contract(self, **changes: object) -> None:
        """Replace fields of the contract by which the reference is asked."""
        self.contract = self.contract.model_copy(update=changes)

    @property
    def failed(self) -> Refused | None:
        """Return why the reference couldn't be loaded, if it couldn't."""
        return self._here.failed

    @property
    def left(self) -> str | None:
        """Return why the GPU isn't asked any more; None: it is, or there never was one."""
        return self._left

    @property
    def answering_ns(self) -> int:
        """Return the nanoseconds of all answers so far, without those in which a guest waited for a processor."""
        return self._here.answering_ns + (self._there.answering_ns if self._there is not None else 0)

    @property
    def oracle(self) -> str:
        """Return in words how expected answers are computed, for the ledger."""
        kind = "fp64" if self.contract.wide else f"{self.contract.dtype}, since it doesn't run in fp64,"
        where = "on the processor" if self._there is None else "on the GPU"
        slices = f", {self._samples} samples at a time" if self._samples is not None else ""
        left = f"; not on the GPU: {self._left}" if self._left is not None else ""
        return f"the reference in {kind} {where}{slices}{left}"

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        self._here.close()
        if self._there is not None:
            self._there.close()

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
        """Call the reference anew, without using remembered answers; in fp64 in slices, if it takes too much room."""
        with self._lock:
            if function != "module_fp64":
                return self._asked_once(function, inputs, shape)
            return self._asked_wide(inputs, shape)

    def _asked_wide(self, inputs: Tensors, shape: Mapping[str, int]) -> Tensors | Refused:
        """Ask in fp64: at once if there is room, in slices otherwise, and on the processor if the GPU has no room."""
        found = self._asked_in_room(inputs, shape)
        if self._there is None or not _ran_out(found):
            return found
        self._leave("it runs out of memory there")
        return self._asked_in_room(inputs, shape)

    def _asked_in_room(self, inputs: Tensors, shape: Mapping[str, int]) -> Tensors | Refused:
        if not self._has_samples(shape):
            return self._asked_once("module_fp64", inputs, shape)
        at_once = self._samples or max(1, shape[BATCH] * self._most_wide_bytes // max(1, self._wide_bytes(shape)))
        if at_once >= shape[BATCH]:
            found = self._asked_once("module_fp64", inputs, shape)
            if not _ran_out(found):
                return found
            at_once = shape[BATCH] // 2
        if not self._may_be_sliced(inputs, shape):
            return self._asked_once("module_fp64", inputs, shape)
        found = self._in_slices("module_fp64", inputs, shape, at_once)
        while _ran_out(found) and at_once > 1:
            at_once //= 2
            found = self._in_slices("module_fp64", inputs, shape, at_once)
        self._samples = at_once
        return found

    def _has_samples(self, shape: Mapping[str, int]) -> bool:
        contract = self.contract
        batched = any(one.batched for one in contract.tensors) and all(one.batched for one in contract.results)
        return contract.varies and batched and shape[BATCH] > 1

    def _may_be_sliced(self, inputs: Tensors, shape: Mapping[str, int]) -> bool:
        """Return whether each sample's answer is its own; asked once, in the task's type, in two halves."""
        if self._sliced is None:
            whole = self._asked_once("module", inputs, shape)
            halves = self._in_slices("module", inputs, shape, -(-shape[BATCH] // 2))
            self._sliced = not (isinstance(whole, Refused) or isinstance(halves, Refused)) and all(
                map(same, whole, halves)
            )
        return self._sliced

    def _in_slices(
        self, function: Function, inputs: Tensors, shape: Mapping[str, int], at_once: int
    ) -> Tensors | Refused:
        import torch

        parts: list[Tensors] = []
        count = len(self.contract.tensors)
        for start in range(0, shape[BATCH], at_once):
            taken = min(at_once, shape[BATCH] - start)
            some = [
                tensor[start : start + taken].contiguous() if one.batched else tensor
                for one, tensor in zip(self.contract.tensors, inputs[:count], strict=True)
            ]
            found = self._asked_once(function, (*some, *inputs[count:]), {**shape, BATCH: taken})
            if isinstance(found, Refused):
                return found
            parts.append(found)
        return tuple(torch.cat(one) for one in zip(*parts, strict=True))

    def _wide_bytes(self, shape: Mapping[str, int]) -> int:
        """Return the bytes of all operands, weights and results of one call with every float in fp64."""

        def size(element: ElementType | None, sizes: tuple[int, ...]) -> int:
            return math.prod(sizes) * (8 if element is None else ITEMSIZE_BYTES[element])

        contract = self.contract
        operands = sum(size(one.element, sizes_at(one.axes, shape)) for one in contract.tensors)
        results = sum(size(one.element, sizes_at(one.axes, shape)) for one in contract.results)
        return operands + results + sum(size(one.element, one.sizes) for one in contract.weights)

    def _asked_once(self, function: Function, inputs: Tensors, shape: Mapping[str, int]) -> Tensors | Refused:
        """Ask on the GPU if there is one. What the processor answers and the GPU doesn't ends the GPU's part."""
        floats: ElementType = "fp64" if function == "module_fp64" else self.contract.dtype
        forms = tuple(Form(sizes_at(one.axes, shape), one.element or floats) for one in self.contract.results)
        if self._there is not None:
            found = self._there.ask(function, inputs, forms)
            if not isinstance(found, Refused) or (_ran_out(found) and function == "module_fp64"):
                return found
            instead = self._here.ask(function, inputs, forms)
            if not isinstance(instead, Refused):
                self._leave(found.reason.message)
            return instead
        return self._here.ask(function, inputs, forms)

    def _leave(self, why: str) -> None:
        """Ask the GPU no more: the reference doesn't run there."""
        assert self._there is not None
        self._left = why
        self._there.close()
        self._there = None

    def operands_unchanged(self, inputs: Tensors) -> bool:
        """Return whether the last call, which got these operands, hasn't written to them."""
        return (self._there or self._here).holds(inputs)

    def state(self, seed: int) -> Tensors:
        """Return the module's initial weights under a seed; raise AnswersSometimes."""
        weights = self.contract.weights
        forms = tuple(Form(one.sizes, one.element or self.contract.dtype) for one in weights)
        return require_answer(self._here.ask("module_state", (_seed(seed),), forms)) if weights else ()

    def generated(self, seed: int, pattern: Pattern = "plain") -> Tensors:
        """Return what the file's own get_inputs draws under a seed; raise AnswersSometimes."""
        return require_answer(self.try_generated(seed, pattern))

    def try_generated(self, seed: int, pattern: Pattern = "plain") -> Tensors | Refused:
        """Return what the file's own get_inputs draws under a seed, or why it doesn't.

        In all patterns but `plain`, its random numbers reach the ends of their ranges; forge/guest/reach.py has them.
        """
        forms = tuple(Form(one.sizes, one.element or self.contract.dtype) for one in self.contract.tensors)
        return self._here.ask("module_inputs", (_seed(seed), _seed(PATTERNS.index(pattern))), forms)


class AnswersSometimes(EnvironmentUnfit):
    """A reference failed at a question, and had answered one of the same form before."""


def require_answer(answer: Tensors | Refused) -> Tensors:
    """Return the answer; raise AnswersSometimes if there is none, since a similar question was answered before."""
    if isinstance(answer, Refused):
        log = f"; {answer.log[-300:]}" if answer.log else ""
        raise AnswersSometimes(f"the reference failed in its guest: {answer.reason.message}{log}")
    return answer


def _ran_out(found: Tensors | Refused) -> bool:
    return isinstance(found, Refused) and found.reason.code == "OUT_OF_MEMORY"


def rms(tensor: torch.Tensor) -> float:
    """Return the root mean square of a tensor's finite values, in their units; 0 if it has none."""
    finite = tensor.double()[tensor.isfinite()]
    return math.sqrt(float(finite.square().mean())) if finite.numel() else 0.0


def relative_error(got: torch.Tensor, exact: torch.Tensor, *, dtype: DType) -> float:
    """Return the largest difference of floats, as a ratio to the root mean square of the exact ones.

    Below fp32 the result's own rounding doesn't count: it hides all others, and the bound allows for it separately.
    Both tensors have the same sizes.
    """
    if not got.is_floating_point() or not got.numel():
        return 0.0
    size = rms(exact)
    beyond = (got.double() - exact.double()).abs()
    if dtype != "fp32":
        beyond.sub_(exact.double().abs(), alpha=UNIT_ROUNDOFF[dtype]).clamp_(min=0)
    return float(beyond.max()) / size if size > 0 else 0.0


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two answers of equal sizes have the same values, with NaN in the same places."""
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two answers are equal, or differ at most as another order of summation makes them.

    Both have the same sizes.
    """
    if equal(one, other):
        return True
    return one.is_floating_point() and bool((one.double() - other.double()).abs().max() <= SAME_ANSWER * rms(one))


def _seed(seed: int) -> torch.Tensor:
    import torch

    return torch.tensor(seed, dtype=torch.int64)
