"""Infers a contract from a reference file: runs it in a guest, examines it, tries known wrong answers; or refuses it.

Everything that decides is computed here from bytes; the guest states only the forms.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from forge.domain.evidence import Admission, Isolation
from forge.domain.input_kind import END_KINDS, InputKind
from forge.domain.own_operation import BATCH, Contract, Result
from forge.domain.policy import Policy
from forge.domain.tensors import Shape
from forge.errors import ReferenceRefused
from forge.lab.calls.load import arena_bytes_for
from forge.lab.freed_memory import keep_freed_memory
from forge.lab.job import Progress, processors
from forge.lab.reference.allowed_error import least_error
from forge.lab.reference.answers import Answers, AnswersSometimes, equal, relative_error, same
from forge.lab.reference.arguments import arguments_of
from forge.lab.reference.binding import rounded_up
from forge.lab.reference.describe import SubmittedReference, describe, refusal
from forge.lab.reference.drawing import Drawing
from forge.lab.reference.ends import with_ends
from forge.lab.reference.family_values import OF_WEIGHTS
from forge.lab.reference.forms import contract_of
from forge.lab.reference.locality import FEWEST_RATIOS
from forge.lab.reference.precision import with_precision
from forge.lab.reference.reference_guest import HERE, AnsweringDevice, Tensors
from forge.lab.reference.room import expected_room, most_set_bytes
from forge.lab.reference.shapes import Shapes, require_places
from forge.lab.reference.soundness import is_sound, sound_seeds, why_not_finite
from forge.lab.reference.trial import tried
from forge.lab.reference.usual_kinds import judged_kinds, usual_kinds
from forge.lab.torch_beside import import_torch_beside
from forge.operations.operation import Operation
from forge.operations.own import own_operation
from forge.sandbox.reply import Refused

SEED = 20260101
"""Seed of the file's generator, and of all draws of an inference."""
SEEDS, MOST_SEEDS, SEEDS_BYTES = 3, 32, 2**24
"""Number of draws at which the reference's error is measured, the most, and the bytes of more than `SEEDS` draws.
Chosen; each costs calls of the reference. A small result needs more, to show how its errors follow its values."""
MOST_SOUND_DRAWS, SOUND_BYTES = 32, 2**28
"""Number of the file's own draws that its reference is asked, and their size in bytes, at most."""
REPEATS = 2
"""Number of further calls with the same operands, to see whether the reference is deterministic. Chosen; each costs a
call."""
MOST_ERROR = 0.25
"""Largest error of a result beside the same one in fp64, relative to its root mean square. With more, an answer of
zeros would be accepted."""


@dataclass(frozen=True)
class Inferred:
    """A reference that a task can be judged by."""

    contract: Contract
    source: bytes
    admission: Admission
    held_out: tuple[Shape, ...]
    """Other batch sizes that were seen to run."""
    further: tuple[Shape, ...] = ()
    """Further shapes of the task, at which the reference was seen to run."""

    @property
    def operation(self) -> Operation:
        """The operation that is judged, before it is bound to a guest."""
        return own_operation(self.contract, self.source)


def infer(
    question: SubmittedReference,
    *,
    policy: Policy,
    isolation: Isolation,
    rng: random.Random,
    progress: Progress,
    place: AnsweringDevice = HERE,
) -> Inferred:
    """Freeze a reference; raise ReferenceRefused with the reason, or EnvironmentUnfit.

    On a GPU, if `place` is one, the reference answers there, and its operands may take an eighth of its memory.
    """
    keep_freed_memory()
    progress("running it in a sandbox")
    import_torch_beside()
    description = describe(question, seed=SEED, policy=policy, isolation=isolation, threads=processors())
    contract = contract_of(question, description, seed=SEED)
    require_places(question, contract)
    if contract.set_bytes > most_set_bytes(policy):
        needs = f"it needs {contract.set_bytes} bytes of operands, weights and results"
        raise refusal(question.name, f"{needs}: {expected_room(policy)}")
    for where in dict.fromkeys((place, HERE)):
        opened = Answers(
            contract,
            question.source,
            policy=policy,
            isolation=isolation,
            threads=processors(),
            arena_bytes=arena_bytes_for(contract.set_bytes),
            place=where,
        )
        with opened as answers:
            inference = _Inference(question, answers, policy, progress)
            try:
                found = inference.run(rng, generator=description.generator)
            except ReferenceRefused:
                if not inference.moved:
                    raise
            else:
                if not inference.moved:
                    return found
            progress(f"its answers on the processor, since it left the GPU: {answers.left}")
    raise AssertionError("nothing moves away from the processor")


class _Inference:
    """One inference through an open guest; `contract` grows step by step."""

    def __init__(self, question: SubmittedReference, answers: Answers, policy: Policy, progress: Progress) -> None:
        self._question = question
        self._answers = answers
        self._policy = policy
        self._progress = progress
        self._weights: Tensors = ()
        self._left: str | None = None

    @property
    def moved(self) -> bool:
        """Return whether the reference went from the GPU to the CPU after its first answers.

        The two devices round differently, so later answers can't be compared with the first ones.
        """
        return self._answers.left != self._left

    @property
    def _contract(self) -> Contract:
        return self._answers.contract

    def run(self, rng: random.Random, *, generator: bool) -> Inferred:
        """Infer what the contract lacks; raise ReferenceRefused."""
        try:
            return self._run(rng, generator=generator)
        except AnswersSometimes as error:  # the same call ran before, so it needs nearly all the memory
            raise self._refused(f"it answers only sometimes: {error}") from error

    def _run(self, rng: random.Random, *, generator: bool) -> Inferred:
        if self._answers.failed is not None:
            raise self._refused(f"it can't be loaded twice: {self._answers.failed.reason.message}")
        self._progress("its inputs")
        self._answers.change_contract(
            arguments=arguments_of(self._question, self._answers, SEED, generator=generator)
        )
        self._progress("its answers")
        cases = [self._case(seed) for seed in range(_seeds(self._contract))]
        self._weights = cases[0][len(self._contract.tensors) :]
        first = self._answer(cases[0])
        self._left = self._answers.left
        rights = [first, *map(self._answer, cases[1:])]
        self._require_sound(cases[0], rights)
        self._require_dependence(cases, rights)
        self._require_more_sound()
        self._progress("its own error in fp64")
        shapes = Shapes(self._question, self._answers, self._weights, SEED, self._policy)
        varied = self._find_wide(cases[0], shapes)
        self._answers.change_contract(results=self._errors(cases, rights))
        self._progress("known wrong answers")
        admission = tried(self._answers, self._question.source, cases, self._policy)
        self._progress("other values and other batches")
        usual = usual_kinds(self._contract)
        judged = judged_kinds(filter(self._stays_sound, (*usual, *(END_KINDS if self._has_numbers() else ()))))
        finite = tuple(kind for kind in usual if kind not in judged and self._stays_finite(kind))
        self._answers.change_contract(kinds=judged, finite_kinds=finite)
        self._progress("the ends of its ranges")
        admission = with_ends(admission, self._answers, self._question.source, SEED, self._policy)
        admission = with_precision(admission, self._answers, self._question.source, SEED, self._policy)
        if not varied:
            shapes.vary()
        further = shapes.further()
        held_out = shapes.held_out(rng, is_sound=lambda batch: self._stays_sound("normal", batch))
        self._require_same(cases[0], rights[0])
        others = tuple(one for one in held_out if one not in further)
        return Inferred(self._contract, self._question.source, admission, others, further)

    def _draw(self, seed: int, kind: InputKind = "normal", batch: int | None = None) -> Tensors:
        shape = self._contract.shape if batch is None else {**self._contract.shape, BATCH: batch}
        return Drawing(self._answers).operands(shape, kind, SEED + seed)

    def _case(self, seed: int) -> Tensors:
        return (*self._draw(seed), *Drawing(self._answers).weights(SEED + seed))

    def _answer(self, case: Tensors) -> Tensors:
        answer = self._answers.asked("module", case, self._contract.shape)
        if isinstance(answer, Refused):
            raise self._refused(f"it fails on inputs like its own: {answer.reason.message}")
        return answer

    def _refused(self, why: str) -> ReferenceRefused:
        return refusal(self._question.name, why)

    def _require_sound(self, case: Tensors, rights: list[Tensors]) -> None:
        for _ in range(REPEATS):
            self._require_same(case, rights[0])
        if not self._answers.operands_unchanged(case):
            raise self._refused("it writes to its operands, which no candidate may")
        if not all(bool(one.isfinite().all()) for right in rights for one in right if one.is_floating_point()):
            raise self._refused("it gives NaN or infinity on inputs like its own")

    def _require_more_sound(self) -> None:
        """Ask more of the file's own draws. A number at which the reference has no answer may be rare in them."""
        if not self._has_numbers():
            return
        for seed in range(_seeds(self._contract), min(MOST_SOUND_DRAWS, SOUND_BYTES // self._contract.set_bytes)):
            answer = self._answer((*self._draw(seed), *self._weights))
            if not all(bool(one.isfinite().all()) for one in answer if one.is_floating_point()):
                raise self._refused("it gives NaN or infinity on inputs like its own")

    def _has_numbers(self) -> bool:
        """Return whether an operand has values at the ends of a range, which a kernel may treat wrong."""
        return any(not one.continuous for one in self._contract.tensors)

    def _require_same(self, case: Tensors, right: Tensors) -> None:
        """Ask the same question again. This is repeated at the end, after other calls."""
        if not all(map(same, right, self._answer(case))):
            raise self._refused(
                "it isn't deterministic: two calls with the same operands differ. It remembers earlier calls, or "
                "draws random numbers (a dropout, in a module that isn't in evaluation mode)"
            )

    def _require_dependence(self, cases: list[Tensors], rights: list[Tensors]) -> None:
        count = len(self._contract.tensors)
        mixed = (*cases[1][:count], *cases[0][count:])
        other = self._answer(mixed)
        if all(equal(one, two) for one, two in zip(rights[0], other, strict=True)):
            raise self._refused(
                "its output doesn't depend on its inputs: a kernel that always returned it would be right"
            )

    def _find_wide(self, case: Tensors, shapes: Shapes) -> bool:
        """Find whether the reference runs in fp64; if all samples take too much room, whether it does in slices.

        Return whether its shapes had to be varied for that, which shows where the samples are.
        """
        found = self._answers.asked("module_fp64", case, self._contract.shape)
        ran_out = isinstance(found, Refused) and found.reason.code == "OUT_OF_MEMORY"
        self._answers.change_contract(wide=not isinstance(found, Refused))
        if ran_out:
            shapes.vary()
            again = self._answers.asked("module_fp64", case, self._contract.shape)
            self._answers.change_contract(wide=not isinstance(again, Refused))
        return ran_out

    def _errors(self, cases: list[Tensors], rights: list[Tensors]) -> tuple[Result, ...]:
        """Return each result with its largest error over all seeds, at least the smallest error that counts."""
        worst = [0.0] * len(self._contract.results)
        for case, right in zip(cases, rights, strict=True):
            exact = self._answers.outputs(case, self._contract.shape, wide=True) if self._contract.wide else right
            if isinstance(exact, Refused):
                raise self._refused(f"it runs in fp64 only sometimes: {exact.reason.message}")
            for place, (got, value) in enumerate(zip(right, exact, strict=True)):
                worst[place] = max(worst[place], relative_error(got, value, dtype=self._contract.dtype))
        if max(worst) > MOST_ERROR:
            raise self._refused(
                f"in fp64 it gives another answer, {max(worst):.2g} of its size away. It draws random numbers under "
                "a seed of its own, remembers earlier calls, or loses its result to rounding"
            )
        least = least_error(self._contract)
        return tuple(
            one.model_copy(update={"error": rounded_up(max(error, least)) if one.element is None else 0.0})
            for one, error in zip(self._contract.results, worst, strict=True)
        )

    def _stays_sound(self, kind: InputKind, batch: int | None = None) -> bool:
        """Return whether the reference can be judged by there, in each of a few draws. One may hide that it can't."""
        shape = self._contract.shape if batch is None else {**self._contract.shape, BATCH: batch}
        cases = self._cases_of(kind, batch)
        return all(is_sound(self._answers, case, shape, kind, self._policy) for case in cases)

    def _stays_finite(self, kind: InputKind) -> bool:
        shape = self._contract.shape
        return all(why_not_finite(self._answers, case, shape) is None for case in self._cases_of(kind))

    def _cases_of(self, kind: InputKind, batch: int | None = None) -> Iterator[Tensors]:
        weights = Drawing(self._answers).weights(SEED, kind) if kind in OF_WEIGHTS else self._weights
        return ((*self._draw(seed, kind, batch), *weights) for seed in sound_seeds(self._contract))


def _seeds(contract: Contract) -> int:
    """Return the number of draws after which each result in floats has `FEWEST_RATIOS` values, if some draws do."""
    smallest = min((math.prod(one.sizes) for one in contract.results if one.element is None), default=0)
    needed = -(-FEWEST_RATIOS // max(1, smallest))
    affordable = needed <= MOST_SEEDS and needed * contract.set_bytes <= SEEDS_BYTES
    return max(SEEDS, needed) if affordable else SEEDS
