"""Calls a loaded candidate: fresh inputs in, judged outputs out.

Every gate's calls are checked in the same way: inputs and red zones must be unchanged. The judge sees the outputs as
they were when the clock stopped, since the guest is stopped from then on (forge/sandbox/freeze.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import InputKind
from forge.domain.tensors import DType
from forge.lab.calls.answers import Answered
from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.chains import Reading, followed, sharing_memory
from forge.lab.calls.configurations import NONE, Configurations
from forge.lab.calls.judged_outputs import SLOWLY_JUDGED, Rules, Verdict, all_plainly_right, errors_of, judged_outputs
from forge.lab.calls.loaded_guest import FILLING, UNFILLED_SHARE, LoadedGuest
from forge.lab.calls.placement import PLAIN, Placement, output_slots
from forge.lab.calls.refusal import earlier_answer, forbidden, no_answer, other_strides, wrong_output
from forge.lab.calls.tuner import Tuner
from forge.lab.calls.ways import at_random
from forge.lab.definitions import definition_of
from forge.lab.finding import Failed
from forge.lab.inputs.draw import draw
from forge.lab.inputs.inside import Inside
from forge.lab.inputs.seeded import CaseSeeds, Seeded, new_seed
from forge.lab.inputs.shape_budget import with_room
from forge.lab.inputs.undivided import undivided_if_small
from forge.lab.judge.reference_call import outputs_of
from forge.lab.observed import Case, Observed, flushed, for_oracle, rotated
from forge.lab.parallel import parallel_map
from forge.sandbox.arena import RED_ZONE_BYTES, Form, SlotSet, set_bytes
from forge.sandbox.launch import Exit
from forge.sandbox.reply import Refused, Returned
from forge.sandbox.session import IDLE, Window
from forge.sandbox.ways import NO_WAYS, Ways

if TYPE_CHECKING:
    import torch


class LoadedKernel:
    """A session with one loaded function, and the operation that it claims to be."""

    def __init__(self, guest: LoadedGuest, asked: AskedOperation, *, seed: int | None = None) -> None:
        self.operation, self.shape, self.held_out = asked.operation, asked.shape, asked.held_out
        self.definition = definition_of(asked.operation)
        self.dtype: DType = asked.dtype
        self.policy, self.runner, self.claimed = asked.policy, asked.runner, asked.claimed
        self.inside = asked.inside or Inside(asked.operation, asked.shape)
        self.entry = guest.entry
        self._fills_memory, self.unfilled_share = guest.fills_memory, UNFILLED_SHARE
        self.calls = 0
        self.seeds: list[int] = []
        """Seeds of all cases so far."""
        self.saw_held_out = False  # once a case at a held-out shape was drawn, the guest's words may name the shape
        self._seed = new_seed() if seed is None else seed
        self.tuner = Tuner(guest.session, tunes=guest.tunes)
        self.begin("")
        self.session, self._arena = guest.session, guest.arena
        self.answered, self._sets = Answered(), tuple[SlotSet, ...]()
        self._laid_out: tuple[tuple[tuple[str, int], ...], int, Placement, int] | None = None

    def begin(self, label: str) -> None:
        """Begin a part of the examination; its questions follow from the seed and the label alone."""
        self.rng = Seeded(self._seed, f"{label}: shapes")
        self._contents = CaseSeeds(Seeded(self._seed, f"{label}: contents"))
        self._fillings, self._ways = (Seeded(self._seed, f"{label}: {one}") for one in ("fillings", "ways"))
        self.tuner.choose_at_random(Seeded(self._seed, f"{label}: configuration"))

    def configurations(self) -> Configurations | Failed:
        """Return what the guest says of its autotuned kernels; nothing if the language has none."""
        if not self.tuner.tunes:
            return NONE
        refused = self.lay_out(self.shape, 1)  # the guest answers in the arena, whose pages may be closed
        self._laid_out = None
        return self.tuner.configurations() if refused is None else no_answer(refused, PLAIN)

    def shapes(self, *wanted: Mapping[str, int]) -> tuple[Mapping[str, int], ...]:
        """Return the wanted shapes, some with room; the public one alone if the operation isn't defined at others."""
        roomy = (with_room(self.operation, shape, self.rng) for shape in wanted)
        return tuple(map(self.inside.within, self.definition.shapes(self.shape, *roomy)))

    def case(
        self,
        shape: Mapping[str, int],
        kind: InputKind = "normal",
        *,
        scalars: tuple[float, ...] | None = None,
    ) -> Case:
        """Draw a new case of the shape, or of one at about its cost that is inside the candidate's domain."""
        return self._drawn(shape, kind, self._next_seed(kind), scalars or tuple(self.operation.scalars.values()))

    def cases(self, shape: Mapping[str, int], kinds: Sequence[InputKind]) -> list[Case]:
        """Draw a case of each kind, in several threads, since drawing large tensors takes long."""
        scalars = tuple(self.operation.scalars.values())
        seeded = [(kind, self._next_seed(kind)) for kind in kinds]
        return parallel_map(lambda one: self._drawn(shape, *one, scalars), seeded, serial_up_to=1)

    def _next_seed(self, kind: InputKind) -> int:
        self.seeds.append(self._contents.next(kind))
        return self.seeds[-1]

    def _drawn(self, asked: Mapping[str, int], kind: InputKind, seed: int, scalars: tuple[float, ...]) -> Case:
        shape = self.inside.within(asked)
        self.saw_held_out |= shape in self.held_out
        return Case(shape, kind, seed, draw(self.operation, shape, self.dtype, kind, seed=seed), scalars)

    @property
    def held_bytes(self) -> int | None:
        """Memory of the guest's processes and its scratch in bytes; None if the machine doesn't show it."""
        return self.session.held_bytes

    @property
    def undelayed_ns(self) -> int:
        """Nanoseconds of the last release, without those in which the guest or the host waited for a processor."""
        return self.session.undelayed_ns

    def finish(self) -> tuple[Exit, str]:
        """Let the guest end by itself within its limits; return how it ended and its log."""
        return self.session.finish()

    def forms(
        self, shape: Mapping[str, int], placement: Placement = PLAIN, *, answers: int = 0
    ) -> tuple[tuple[Form, ...], tuple[Form, ...]]:
        """Return the forms of inputs and outputs at a shape.

        With `answers`, outputs have one more axis of this size in front.
        """
        inputs = tuple(placement.form(self.operation, spec, shape, self.dtype) for spec in self.operation.inputs)
        front = (answers,) if answers else ()
        returned = self.operation.returned
        outputs = tuple(Form((*front, *spec.sizes(shape)), spec.element_type(self.dtype)) for spec in returned)
        return inputs, outputs

    def fits(self, shape: Mapping[str, int], count: int, placement: Placement = PLAIN) -> bool:
        """Return whether `count` sets of this shape fit into the arena."""
        return count * set_bytes(*self.forms(shape, placement)) + 2 * RED_ZONE_BYTES <= self._arena.size_bytes

    def lay_out(
        self, shape: Mapping[str, int], count: int, placement: Placement = PLAIN, *, answers: int = 0
    ) -> Refused | None:
        """Give `count` sets their places; a repeated request keeps tensors and addresses."""
        if (refused := self.tuner.settle()) is not None:
            return refused
        wanted = (tuple(sorted(shape.items())), count, placement, answers)
        if wanted == self._laid_out:
            return None
        forms = self.forms(shape, placement, answers=answers)
        self._sets = self._arena.lay_out(count, *forms, together=placement.together(self.operation))
        self.session.lay_out(
            self._sets,
            scalars=len(self.operation.scalars),
            closed=placement.closed(self.operation, self._sets, self._arena.size_bytes),
            return_inputs=placement.return_inputs or bool(self.operation.updates),
            still=self.operation.still,
            weights=self.operation.weights,
            far=placement.far_positions(self.operation),
            apart=self.definition.outputs_apart,
        )
        self._laid_out = wanted
        return None

    def call(
        self,
        cases: Sequence[Case],
        *,
        function: int = 0,
        first: int = 0,
        sets: int | None = None,
        cycles: int = 1,
        retain: bool = False,
        placement: Placement = PLAIN,
        ways: Ways | None = None,
    ) -> tuple[Observed, ...] | Failed:
        """Make one call per case and cycle, in one release; all cases share a shape and scalars.

        Cycles that retain have one case. The result then holds all answers to it, along one more axis in front.
        """
        count, answers = len(cases), cycles if retain and cycles > 1 else 0
        refused = self.lay_out(cases[0].shape, sets or count, placement, answers=answers)
        if refused is not None:
            return no_answer(refused, placement, cases[0])
        used = self._sets[first : first + count]
        with undivided_if_small(self.operation, cases[0].shape):
            for case, slots in zip(cases, used, strict=True):
                self._write((case, slots))
                for slot in slots.outputs:
                    self._arena.poison(slot)
        answer = self.session.release(
            function,
            first,
            count,
            cases[0].scalars,
            cycles=cycles,
            retain=retain,
            ways=self._usual_ways(cycles) if ways is None else ways,
            filling=self._filling(),
        )
        if isinstance(answer, Refused):
            self._laid_out = None if answer.reason.code == "OUT_OF_MEMORY" else self._laid_out  # it had no room
            return no_answer(answer, placement, cases[0])
        self.calls += count * cycles
        with undivided_if_small(self.operation, cases[0].shape, answers=max(1, answers)):
            return self._watch(cases, used, answer)

    def _filling(self) -> int:
        """Return the byte with which memory is filled during a release; 0 for none.

        Timed calls have unfilled memory, so some calls of a verification, chosen at random, have it too.
        """
        if not self._fills_memory or (self.calls and self._fillings.random() < self.unfilled_share):
            return 0
        return FILLING

    def _usual_ways(self, cycles: int) -> Ways:
        if not self._fills_memory or cycles > 1:
            return NO_WAYS
        return at_random(self._ways, gradients=self.definition.records_gradients)

    def chain(
        self, cases: Sequence[Case], *, first: int, count: int, function: int, reading: Reading = "judged"
    ) -> tuple[Observed, ...] | Failed:
        """Make `count` calls, the first on the case `first`, each other one on the case that the last outputs choose.

        No call can start before the previous one is done. Most cases are never asked, so answering all of them at
        once is no gain. Each result has the time of all calls together.

        The guest looks at its surroundings before it has the inputs, and again when its outputs have been read. So
        it can't use either time for the calls. What is `unread` gives one result, with the time alone.
        """
        looked = self.lay_out(cases[0].shape, len(cases)) or self.session.look_around()
        if isinstance(looked, Refused):
            return no_answer(looked, PLAIN, cases[0])
        parallel_map(self._write, zip(cases, self._sets, strict=True), serial_up_to=1)
        answer = self.session.chain(function, first, count, cases[0].scalars)
        if isinstance(answer, Refused):
            return no_answer(answer, PLAIN, cases[0])
        self.calls += count if function != IDLE else 0
        if reading == "unread" or function == IDLE:
            return (Observed(cases[first], (), answer.elapsed_ns),)
        returned = len(self._sets[first].outputs)
        addresses = [answer.addresses[call * returned : (call + 1) * returned] for call in range(count)]
        order = followed(self.session, self._arena, self._sets, first, addresses)
        if not isinstance(order, Refused) and reading == "judged":
            apart = self.definition.outputs_apart
            order = sharing_memory(self.session, self._sets[first], addresses, apart=apart) or order
        if isinstance(order, Refused):
            return no_answer(order, PLAIN, cases[first])
        observed = self._watch([cases[index] for index in order], [self._sets[index] for index in order], answer)
        left = self.session.compare_surroundings()
        if isinstance(observed, Failed) or not isinstance(left, Refused):
            return observed
        return no_answer(left, PLAIN, cases[0])

    def capture(self) -> bytes | Refused:
        """Let the guest list the launches of one call with the first set's inputs. The list is untrusted."""
        self._laid_out = None  # the guest overwrites the arena
        return self.session.capture(tuple(self.operation.scalars.values()))

    def count_operators(self, calls: int) -> bytes | Refused:
        """Let torch's profiler count operators in calls with the first set's inputs. The table is untrusted."""
        self._laid_out = None  # the guest overwrites the arena
        return self.session.count_operators(tuple(self.operation.scalars.values()), calls)

    def fill(self, cases: Sequence[Case]) -> Refused | None:
        """Lay out one set with inputs for each case, to be timed."""
        self._laid_out = None
        answer = self.lay_out(cases[0].shape, len(cases), Placement(return_inputs=True)) or self.session.room()
        if isinstance(answer, Refused):
            return answer
        parallel_map(self._write, zip(cases, self._sets, strict=True), serial_up_to=1)
        return None

    def _write(self, one: tuple[Case, SlotSet]) -> None:
        case, slots = one
        for slot, tensor in zip(slots.inputs, case.inputs, strict=True):
            self._arena.write(slot, tensor)

    def time(
        self, function: int, window: Window, cases: Sequence[Case]
    ) -> tuple[Returned, tuple[Observed, ...]] | Failed:
        """Time a window of calls in a trusted guest; return its answer, and the outputs of the set copied out."""
        answer = self.session.time(function, window, cases[0].scalars)
        if isinstance(answer, Refused):
            return no_answer(answer, PLAIN, cases[0])
        if window.copied is None:
            return answer, ()
        self.calls += len(cases)
        moved = rotated(cases, window.copied, window.rotation_offset, self.operation.still)
        observed = self._watch([moved], [self._sets[window.copied]], answer)
        return observed if isinstance(observed, Failed) else (answer, observed)

    def _watch(
        self, cases: Sequence[Case], used: Sequence[SlotSet], answer: Returned
    ) -> tuple[Observed, ...] | Failed:
        if not self._arena.red_zones_intact():
            return forbidden("OUT_OF_BOUNDS", "bytes outside the operands were written", cases[0])
        changed = next((one for one in parallel_map(self._changed_input, zip(cases, used, strict=True)) if one), None)
        if changed is not None:
            return changed
        strides = other_strides(self.operation, cases[0], answer)
        if strides is not None:
            return strides
        read = self._arena.read
        outputs = parallel_map(lambda slots: tuple(map(read, output_slots(self.operation, slots))), used)
        return tuple(Observed(case, got, answer.elapsed_ns) for case, got in zip(cases, outputs, strict=True))

    def _changed_input(self, one: tuple[Case, SlotSet]) -> Failed | None:
        case, slots = one
        for slot, tensor, spec in zip(slots.inputs, case.inputs, self.operation.inputs, strict=True):
            if spec.name not in self.operation.updates and not self._arena.holds(slot, tensor):
                return forbidden("INPUT_MUTATED", f"the input {spec.name!r} was written to", case)
        return None

    def holds_inputs(self, case: Case) -> bool:
        """Return whether nothing in the arena but the first set's outputs changed since the case was written."""
        return self._arena.red_zones_intact() and all(map(self._arena.holds, self._sets[0].inputs, case.inputs))

    def check_alone(self, case: Case, placement: Placement = PLAIN) -> tuple[WorkloadErrors, ...] | Failed:
        """Call and judge one case with any configuration, since no other answer is compared with it."""
        self.tuner.choose_at_random(self.rng)
        return self.check([case], placement=placement)

    def check(
        self, cases: Sequence[Case], *, retain: bool = False, placement: Placement = PLAIN
    ) -> tuple[WorkloadErrors, ...] | Failed:
        """Call and judge every case; stop at the first wrong answer."""
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

    def wrong(self, observed: Observed) -> Failed | None:
        """Judge quickly, or in full if the call isn't plainly right; return a wrong call's refusal."""
        return self.settle(observed, self.judge_if_needed(observed))

    def plainly_right(self, observed: Observed) -> bool:
        """Return whether a quick look, without the reference's errors, suffices to accept a call."""
        if observed.case.kind in SLOWLY_JUDGED:
            return False
        asked = for_oracle(observed, self.runner.device)
        with undivided_if_small(self.operation, asked.case.shape):
            rules = self.operation.oracle(*asked.case.inputs, *asked.case.scalars)
            return all_plainly_right(self.operation, asked, rules, dtype=self.dtype, policy=self.policy)

    def first_wrong(self, observed: Sequence[Observed]) -> Failed | None:
        """Return the refusal of the first wrong call."""
        return next(filter(None, map(self.wrong, observed)), None)

    def expected(self, case: Case) -> tuple[Rules, tuple[torch.Tensor, ...]]:
        """Return a case's expected outputs, and the reference's outputs in the working type.

        Subnormal inputs may be treated as zeros. There the reference gets zeros, and its error is allowed.
        """
        inputs = tuple(map(flushed, case.inputs)) if case.kind == "subnormal" else case.inputs
        baselines = outputs_of(self.operation, self.operation.reference, inputs, case.scalars)
        return self.operation.oracle(*case.inputs, *case.scalars), baselines

    def judge(self, observed: Observed) -> Verdict:
        """Judge one call's outputs by the oracle; the expectation is computed only now."""
        alone = self.judge_alone(observed)
        return alone[0], self.settle(observed, alone)

    def settle(self, observed: Observed, alone: Verdict | None) -> Failed | None:
        """Complete a verdict with earlier answers: say if a wrong one is of them, remember a right one."""
        wrong = alone and alone[1]
        if wrong is None:
            self.answered.keep(observed.outputs)
            return None
        return earlier_answer(wrong) if self.answered.holds(observed.outputs) else wrong

    def judge_if_needed(self, observed: Observed) -> Verdict | None:
        """Return None if a quick look suffices to accept a call, else as `judge_alone`; several threads may ask."""
        return None if self.plainly_right(observed) else self.judge_alone(observed)

    def judge_alone(self, observed: Observed) -> Verdict:
        """Judge one call without regard to earlier answers; several threads may do so."""
        asked = for_oracle(observed, self.runner.device)
        with undivided_if_small(self.operation, observed.case.shape):
            rules, baselines = self.expected(asked.case)
            results = judged_outputs(self.operation, asked, rules, baselines, dtype=self.dtype, policy=self.policy)
        errors = errors_of(asked.case, results)
        for spec, one in zip(self.operation.outputs, results, strict=True):
            if not one.within:
                return errors, wrong_output(self.operation, self.dtype, self.entry, observed.case, spec.name, one)
        return errors, None
