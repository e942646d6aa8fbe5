"""A loaded candidate and the one way to call it: fresh inputs in, judged outputs out.

Every call is watched the same way, whatever gate makes it: inputs and red zones must be as they were. What is judged
is what stood there when the clock stopped, since the guest stands still from then on (forge/sandbox/freeze.py).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forge.domain.evidence import WorkloadErrors
from forge.domain.operation import Expectation, Expected, InputKind, Operation
from forge.domain.policy import Policy
from forge.domain.tensors import ClaimableLayout, DType
from forge.lab.finding import Failed
from forge.lab.inputs import draw
from forge.lab.judge import Judged, judge, judge_specials, plainly_within
from forge.lab.placement import PLAIN, Placement
from forge.lab.refusal import forbidden, no_answer, replayed, wrong_output
from forge.sandbox.arena import RED_ZONE_BYTES, Arena, Form, SlotSet, contiguous_strides, set_bytes
from forge.sandbox.launch import Exit
from forge.sandbox.reply import Refused, Returned
from forge.sandbox.session import Session

if TYPE_CHECKING:
    import torch

SPECIAL_KINDS: frozenset[InputKind] = frozenset({"special_rows", "special_weights"})
PATTERNED_KINDS: frozenset[InputKind] = frozenset({"constant", "ties"})
"""Values that repeat, so that the rounding errors of a sum don't cancel."""


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
        device: Literal["cpu", "cuda"] = "cpu",
        claimed: tuple[ClaimableLayout, ...] = (),
        interpreted: bool = False,
    ) -> None:
        self.operation = operation
        self.shape = shape
        self.held_out = held_out
        self.dtype: DType = dtype
        self.policy = policy
        self.entry = entry
        self.device = device
        self.claimed = claimed
        self.interpreted = interpreted
        self.calls = 0
        self.seeds: list[int] = []
        self._session = session
        self._arena = arena
        self._earlier: deque[tuple[torch.Tensor, ...]] = deque(maxlen=8)
        self._sets: tuple[SlotSet, ...] = ()
        self._laid_out: tuple[tuple[tuple[str, int], ...], int, Placement] | None = None

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

    @property
    def remaining_s(self) -> float:
        """What is left of the time that the whole verification may take."""
        return self._session.remaining_s

    def hurry(self, reply_limit_s: float) -> None:
        """Wait at most so long for each answer from now on."""
        self._session.hurry(reply_limit_s)

    def finish(self, patience_s: float) -> tuple[Exit | None, str]:
        """Ask no more, and let the guest end by itself; how it ended, None if it didn't, and its log."""
        return self._session.finish(patience_s)

    def forms(
        self, shape: Mapping[str, int], placement: Placement = PLAIN
    ) -> tuple[tuple[Form, ...], tuple[Form, ...]]:
        """The forms of inputs and outputs at a shape."""
        inputs = tuple(placement.form(self.operation, spec, shape, self.dtype) for spec in self.operation.inputs)
        outputs = tuple(Form(spec.sizes(shape), self.dtype) for spec in self.operation.outputs)
        return inputs, outputs

    def fits(self, shape: Mapping[str, int], count: int) -> bool:
        """Whether `count` sets of this shape fit into the arena."""
        return count * set_bytes(*self.forms(shape)) + 2 * RED_ZONE_BYTES <= self._arena.size_bytes

    def lay_out(self, shape: Mapping[str, int], count: int, placement: Placement = PLAIN) -> Refused | None:
        """Give `count` sets their places; the same request again keeps tensors and addresses as they are."""
        wanted = (tuple(sorted(shape.items())), count, placement)
        if wanted == self._laid_out:
            return None
        self._sets = self._arena.lay_out(count, *self.forms(shape, placement))
        answer = self._session.lay_out(
            self._sets,
            scalars=len(self.operation.scalars),
            closed=placement.closed(self._sets, self._arena.size_bytes),
            return_inputs=placement.return_inputs,
        )
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
        placement: Placement = PLAIN,
    ) -> tuple[Observed, ...] | Failed:
        """Make one call per case, in one release; all cases share a shape and scalars."""
        count = len(cases)
        refused = self.lay_out(cases[0].shape, sets or count, placement)
        if refused is not None:
            return no_answer(refused, placement, cases[0])
        used = self._sets[first : first + count]
        for case, slots in zip(cases, used, strict=True):
            for slot, tensor in zip(slots.inputs, case.inputs, strict=True):
                self._arena.write(slot, tensor)
            for slot in slots.outputs:
                self._arena.poison(slot)
        answer = self._session.release(function, first, count, cases[0].scalars, retain=retain)
        if isinstance(answer, Refused):
            return no_answer(answer, placement, cases[0])
        self.calls += count
        return self._watch(cases, used, answer)

    def _watch(
        self, cases: Sequence[Case], used: Sequence[SlotSet], answer: Returned
    ) -> tuple[Observed, ...] | Failed:
        if not self._arena.red_zones_intact():
            return forbidden("OUT_OF_BOUNDS", "bytes outside the operands were written", cases[0])
        for case, slots in zip(cases, used, strict=True):
            pairs = zip(slots.inputs, case.inputs, self.operation.inputs, strict=True)
            for slot, tensor, spec in pairs:
                if not self._arena.holds(slot, tensor):
                    return forbidden("INPUT_MUTATED", f"the input {spec.name!r} was written to", case)
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
            expected = contiguous_strides(sizes)
            pairs = zip(sizes, form.strides, expected, strict=False)
            if all(sizes) and any(size > 1 and got != want for size, got, want in pairs):
                message = f"the output {spec.name!r} has strides {form.strides}, expected {expected}"
                return forbidden("INCORRECT_STRIDES", message, case)
        return None

    def check(
        self, cases: Sequence[Case], *, retain: bool = False, placement: Placement = PLAIN
    ) -> tuple[WorkloadErrors, ...] | Failed:
        """Call and judge every case; the first wrong one ends it."""
        observed = self.call(cases, retain=retain, placement=placement)
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
                isinstance(expected, Expectation)
                and plainly_within(got, expected, dtype=self.dtype, policy=self.policy)
                for got, expected in zip(one.outputs, expectations, strict=True)
            )
            wrong = None if plain else self.judge(one)[1]
            if wrong is not None:
                return wrong
        return None

    def expected(self, case: Case) -> tuple[tuple[Expected, ...], tuple[torch.Tensor, ...]]:
        """What a case's outputs should be, and what the reference makes of it in the working type.

        Subnormal inputs may be taken for zeros: there the reference is asked with zeros, and its error is allowed.
        """
        inputs = tuple(map(_flushed, case.inputs)) if case.kind == "subnormal" else case.inputs
        reference = self.operation.reference(*inputs, *case.scalars)
        baselines = reference if isinstance(reference, tuple) else (reference,)
        return self.operation.oracle(*case.inputs, *case.scalars), baselines

    def judge(self, observed: Observed) -> tuple[WorkloadErrors, Failed | None]:
        """Hold one call's outputs against the oracle; the expectation is computed only now."""
        case = observed.case
        expectations, baselines = self.expected(case)
        results = [
            self._judge_one(case, got, expected, baseline)
            for got, expected, baseline in zip(observed.outputs, expectations, baselines, strict=True)
        ]
        errors = WorkloadErrors(
            shape=dict(case.shape),
            inputs=case.kind,
            max_relative_error=max(j.max_relative_error for j in results),
            bound_used=min(max(j.bound_used for j in results), 1e300),
        )
        is_replay = any(_equal(observed.outputs, earlier) for earlier in self._earlier)
        self._earlier.append(observed.outputs)
        for spec, one in zip(self.operation.outputs, results, strict=True):
            if not one.within:
                wrong = wrong_output(self.operation, self.dtype, self.entry, case, spec.name, one)
                return errors, replayed(wrong) if is_replay else wrong
        return errors, None

    def _judge_one(self, case: Case, got: torch.Tensor, expected: Expected, baseline: torch.Tensor) -> Judged:
        if case.kind in SPECIAL_KINDS and isinstance(expected, Expectation):
            # a NaN among the weights belongs to its column alone
            spreads = self.operation.specials == "nan_may_spread" and case.kind == "special_rows"
            return judge_specials(
                got, expected, baseline, dtype=self.dtype, policy=self.policy, nan_may_spread=spreads
            )
        return judge(
            got,
            expected,
            baseline,
            dtype=self.dtype,
            policy=self.policy,
            patterned=case.kind in PATTERNED_KINDS,
            integers=case.kind == "integers",
        )


def _equal(outputs: tuple[torch.Tensor, ...], others: tuple[torch.Tensor, ...]) -> bool:
    import torch

    return all(torch.equal(one, other) for one, other in zip(outputs, others, strict=True))


def _flushed(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.where(tensor.abs() < torch.finfo(tensor.dtype).smallest_normal, 0.0, tensor)
