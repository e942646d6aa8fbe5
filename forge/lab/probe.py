"""A loaded candidate and the one way to call it: fresh inputs in, judged outputs out.

Every call is watched the same way, whatever gate makes it: inputs and red zones must be as they were. What is judged
is what stood there when the clock stopped, since the guest stands still from then on (forge/sandbox/freeze.py).
"""

from __future__ import annotations

import dataclasses
import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.domain.evidence import Counterexample, WorkloadErrors
from forge.domain.operation import InputKind, Operation
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.domain.verdict import Reason
from forge.lab.finding import Failed
from forge.lab.inputs import draw
from forge.lab.judge import Judged, judge, plainly_within
from forge.sandbox.arena import Arena, Form, SlotSet, set_bytes
from forge.sandbox.reply import Refused, Returned
from forge.sandbox.session import Session

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Case:
    """One call to be made: operands, scalars, and how they were drawn."""

    shape: Mapping[str, int]
    kind: InputKind
    seed: int
    inputs: tuple[torch.Tensor, ...]
    scalars: tuple[float, ...]


@dataclass(frozen=True)
class Observed:
    """One call that was made and watched."""

    case: Case
    outputs: tuple[torch.Tensor, ...]
    elapsed_ns: int
    """Of the whole release that this call was part of."""


class Probe:
    """A session with one loaded function, and the operation it claims to be."""

    def __init__(
        self,
        session: Session,
        arena: Arena,
        *,
        operation: Operation,
        shape: Mapping[str, int],
        held_out: tuple[Mapping[str, int], ...],
        dtype: DType,
        policy: Policy,
        entry: str,
    ) -> None:
        self.operation = operation
        self.shape = shape
        self.held_out = held_out
        self.dtype: DType = dtype
        self.policy = policy
        self.entry = entry
        self.calls = 0
        self.seeds: list[int] = []
        self._session = session
        self._arena = arena
        self._earlier: deque[tuple[torch.Tensor, ...]] = deque(maxlen=8)
        self._sets: tuple[SlotSet, ...] = ()
        self._laid_out: tuple[tuple[tuple[str, int], ...], int] | None = None

    def case(
        self,
        shape: Mapping[str, int],
        kind: InputKind = "normal",
        *,
        scalars: tuple[float, ...] | None = None,
    ) -> Case:
        """Draw a new case from the host's randomness."""
        seed = int.from_bytes(os.urandom(6), "big")
        self.seeds.append(seed)
        inputs = draw(self.operation, shape, self.dtype, kind, seed=seed)
        return Case(shape, kind, seed, inputs, scalars or tuple(self.operation.scalars.values()))

    def forms(self, shape: Mapping[str, int]) -> tuple[tuple[Form, ...], tuple[Form, ...]]:
        """The forms of inputs and outputs at a shape."""
        inputs = tuple(Form(spec.sizes(shape), self.dtype) for spec in self.operation.inputs)
        outputs = tuple(Form(spec.sizes(shape), self.dtype) for spec in self.operation.outputs)
        return inputs, outputs

    def fits(self, shape: Mapping[str, int], count: int) -> bool:
        """Whether `count` sets of this shape fit into the arena."""
        return count * set_bytes(*self.forms(shape)) + 8192 <= self._arena.size_bytes

    def lay_out(self, shape: Mapping[str, int], count: int) -> Refused | None:
        """Give `count` sets their places; the same request again keeps tensors and addresses as they are."""
        wanted = (tuple(sorted(shape.items())), count)
        if wanted == self._laid_out:
            return None
        self._sets = self._arena.lay_out(count, *self.forms(shape))
        answer = self._session.lay_out(self._sets, scalars=len(self.operation.scalars))
        self._laid_out = wanted if isinstance(answer, Returned) else None
        return answer if isinstance(answer, Refused) else None

    def call(
        self,
        cases: Sequence[Case],
        *,
        function: int = 0,
        first: int = 0,
        sets: int | None = None,
        retain: bool = False,
    ) -> tuple[Observed, ...] | Failed:
        """Make one call per case, in one release; all cases share a shape and scalars."""
        count = len(cases)
        refused = self.lay_out(cases[0].shape, sets or count)
        if refused is not None:
            return _as_failed(refused)
        used = self._sets[first : first + count]
        for case, slots in zip(cases, used, strict=True):
            for slot, tensor in zip(slots.inputs, case.inputs, strict=True):
                self._arena.write(slot, tensor)
            for slot in slots.outputs:
                self._arena.poison(slot)
        answer = self._session.release(function, first, count, cases[0].scalars, retain=retain)
        if isinstance(answer, Refused):
            return _as_failed(answer)
        self.calls += count
        return self._watch(cases, used, answer)

    def _watch(
        self, cases: Sequence[Case], used: Sequence[SlotSet], answer: Returned
    ) -> tuple[Observed, ...] | Failed:
        if not self._arena.red_zones_intact():
            return _forbidden("OUT_OF_BOUNDS", "bytes outside the operands were written", cases[0])
        for case, slots in zip(cases, used, strict=True):
            pairs = zip(slots.inputs, case.inputs, self.operation.inputs, strict=True)
            for slot, tensor, spec in pairs:
                if not self._arena.holds(slot, tensor):
                    return _forbidden("INPUT_MUTATED", f"the input {spec.name!r} was written to", case)
        strides = self._strides_problem(cases[0], answer)
        if strides is not None:
            return strides
        return tuple(
            Observed(case, tuple(self._arena.read(slot) for slot in slots.outputs), answer.elapsed_ns)
            for case, slots in zip(cases, used, strict=True)
        )

    def _strides_problem(self, case: Case, answer: Returned) -> Failed | None:
        for spec, form in zip(self.operation.outputs, answer.outputs, strict=False):
            sizes = spec.sizes(case.shape)
            expected = _contiguous_strides(sizes)
            pairs = zip(sizes, form.strides, expected, strict=False)
            if all(sizes) and any(size > 1 and got != want for size, got, want in pairs):
                message = f"the output {spec.name!r} has strides {form.strides}, expected {expected}"
                return _forbidden("INCORRECT_STRIDES", message, case)
        return None

    def check(self, cases: Sequence[Case], *, retain: bool = False) -> tuple[WorkloadErrors, ...] | Failed:
        """Call and judge every case; the first wrong one ends it."""
        observed = self.call(cases, retain=retain)
        if isinstance(observed, Failed):
            return observed
        errors = []
        for one in observed:
            measured, wrong = self.judge(one)
            if wrong is not None:
                return wrong
            errors.append(measured)
        return tuple(errors)

    def first_wrong(self, observed: Sequence[Observed]) -> Failed | None:
        """Judge many calls quickly: in full only those that aren't plainly right."""
        for one in observed:
            expectations = self.operation.oracle(*one.case.inputs, *one.case.scalars)
            plain = all(
                plainly_within(got, expectation, dtype=self.dtype, policy=self.policy)
                for got, expectation in zip(one.outputs, expectations, strict=True)
            )
            wrong = None if plain else self.judge(one)[1]
            if wrong is not None:
                return wrong
        return None

    def judge(self, observed: Observed) -> tuple[WorkloadErrors, Failed | None]:
        """Hold one call's outputs against the oracle; the expectation is computed only now."""
        case = observed.case
        expectations = self.operation.oracle(*case.inputs, *case.scalars)
        reference = self.operation.reference(*case.inputs, *case.scalars)
        baselines = reference if isinstance(reference, tuple) else (reference,)
        judged = [
            judge(
                got,
                expectation,
                baseline,
                dtype=self.dtype,
                policy=self.policy,
                patterned=case.kind == "constant",
            )
            for got, expectation, baseline in zip(observed.outputs, expectations, baselines, strict=True)
        ]
        errors = WorkloadErrors(
            shape=dict(case.shape),
            inputs=case.kind,
            max_relative_error=max(j.max_relative_error for j in judged),
            bound_used=min(max(j.bound_used for j in judged), 1e300),
        )
        replayed = any(_equal(observed.outputs, earlier) for earlier in self._earlier)
        self._earlier.append(observed.outputs)
        for spec, one in zip(self.operation.outputs, judged, strict=True):
            if not one.within:
                wrong = self._wrong(case, spec.name, one)
                return errors, _replayed(wrong) if replayed else wrong
        return errors, None

    def _wrong(self, case: Case, output: str, judged: Judged) -> Failed:
        code = "INCORRECT_NUMERICAL" if judged.finite else "NON_FINITE"
        size = ", ".join(f"{axis}={n}" for axis, n in case.shape.items())
        message = (
            f"{output}{list(judged.worst)} is {judged.got!r}, expected {judged.expected!r} "
            f"within {judged.allowed_error:.3g}, at {size} with {case.kind} inputs"
        )
        counterexample = Counterexample(
            shape=dict(case.shape),
            inputs=case.kind,
            output=output,
            index=judged.worst,
            expected=repr(judged.expected),
            got=repr(judged.got),
            allowed_error=repr(judged.allowed_error),
            snippet=self._snippet(case, output, judged),
        )
        return Failed(
            reason=Reason(code=code, message=message),
            observed=f"{judged.bound_used:.3g} x the bound",
            threshold="1 x the bound, every element",
            counterexample=counterexample,
        )

    def _snippet(self, case: Case, output: str, judged: Judged) -> str:
        position = [spec.name for spec in self.operation.outputs].index(output)
        taken = f"[{position}]" if len(self.operation.outputs) > 1 else ""
        return (
            "from forge.lab.inputs import draw\n"
            "from forge.operations import find_operation\n"
            f"from kernel import {self.entry}\n\n"
            f"operation = find_operation({self.operation.name!r})\n"
            f"inputs = draw(operation, {dict(case.shape)!r}, {self.dtype!r}, {case.kind!r}, seed={case.seed})\n"
            f"got = {self.entry}(*inputs, *{case.scalars!r}){taken}\n"
            f"print(got[{judged.worst!r}], 'expected', {judged.expected!r})\n"
        )


def _contiguous_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _equal(outputs: tuple[torch.Tensor, ...], others: tuple[torch.Tensor, ...]) -> bool:
    import torch

    return all(torch.equal(one, other) for one, other in zip(outputs, others, strict=True))


def _replayed(wrong: Failed) -> Failed:
    message = f"an earlier answer was returned for a new question: {wrong.reason.message}"
    return dataclasses.replace(
        wrong,
        reason=Reason(code="REPLAYED_OUTPUT", message=message),
        observed="an earlier answer, bit for bit",
        threshold="every answer fresh",
    )


def _as_failed(refused: Refused) -> Failed:
    return Failed(
        reason=refused.reason,
        observed=refused.reason.message,
        threshold="every call returns",
        log=refused.log,
    )


def _forbidden(code: str, message: str, case: Case) -> Failed:
    size = ", ".join(f"{axis}={n}" for axis, n in case.shape.items())
    reason = Reason.model_validate({"code": code, "message": f"{message}, at {size}"})
    return Failed(reason=reason, observed=message, threshold="none")
