"""Finds at which other sizes a reference runs: other batches, and the sizes that the user says vary."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from forge.domain.own_operation import BATCH, Axis, Constant, Contract, Generated, Operand, Result
from forge.domain.policy import Policy
from forge.domain.tensors import Shape, shape_text
from forge.errors import ReferenceRefused
from forge.lab.inputs.random_sizes import of_class
from forge.lab.reference.answers import Answers
from forge.lab.reference.classed_sizes import classed_shapes
from forge.lab.reference.describe import DeclaredRange, Place, SubmittedReference, refusal
from forge.lab.reference.drawing import Drawing
from forge.lab.reference.reference_guest import Tensors
from forge.lab.reference.room import most_set_bytes
from forge.lab.reference.soundness import why_not_finite

OTHER_BATCHES = (3, 2)
"""Batch sizes at which a reference is tried, to see whether its batch may vary. Chosen: one odd, one even, and small,
since each costs a call."""
HELD_OUT = 4
"""Number of shapes with random sizes that are held out, besides those at the ends of declared ranges. Chosen; each
costs calls of the reference and of every candidate."""
MOST_BATCH = 64
"""Largest batch size that is held out, unless the user declares a larger one. Chosen; time and memory of a held-out
question grow with the batch."""
MANY, MANY_BYTES = (257, 400), 2**24
"""Range of one more batch that is held out, and the bytes of a call with it, at most. Kernels keep room for 64 or 256
rows. Chosen; a call with so few bytes takes milliseconds."""
ROOM_BYTES = 2**27
"""Largest size of one call, in bytes, of a shape that is larger than the frozen one. A guest's arena has room for
several such calls."""
MOST_MATCHING = 4
"""Number of a result's sizes that equal a varying size, at most. Each may vary with it or not, which makes 2^4
combinations."""


def require_places(question: SubmittedReference, contract: Contract) -> None:
    """Raise ReferenceRefused unless the declared sizes exist, an axis has one size, and each declared axis varies."""
    sizes = {(one.name, dim): size for one in contract.tensors for dim, size in enumerate(one.sizes)}
    ranged = [one.place for one in question.ranges]
    for place in (*(place for axis in question.axes for place in axis.places), *ranged):
        if place not in sizes:
            known = ", ".join(f"{name}.{dim}" for name, dim in sizes)
            raise refusal(question.name, f"it has no size {place[0]}.{place[1]}: expected one of {known}")
    for axis in question.axes:
        where = ".".join(map(str, axis.places[0]))
        if len({sizes[place] for place in axis.places}) > 1:
            said = ", ".join(f"{name}.{dim} is {sizes[name, dim]}" for name, dim in axis.places)
            raise refusal(question.name, f"its axis {axis.name!r} has several sizes: {said}; expected one")
        if axis.name != BATCH and not set(ranged) & set(axis.places):
            why = f"its axis {axis.name!r} doesn't vary: expected --vary {where}=LOW..HIGH as well"
            raise refusal(question.name, why)
    for one in question.ranges:
        size, where = sizes[one.place], f"{one.place[0]}.{one.place[1]}"
        if not one.low <= size <= one.high:
            raise refusal(question.name, f"{where} is {size}: expected a range around it, not {one.low}..{one.high}")


class Shapes:
    """The search for other shapes of one reference; the contract of the open guest grows with what is found."""

    def __init__(
        self, question: SubmittedReference, answers: Answers, weights: Tensors, seed: int, policy: Policy
    ) -> None:
        self._question = question
        self._answers = answers
        self._weights = weights
        self._seed = seed
        self._policy = policy

    @property
    def _contract(self) -> Contract:
        return self._answers.contract

    def vary(self) -> None:
        """Let the declared sizes vary, and the batch if the reference runs at others; raise ReferenceRefused."""
        named = {place: axis.name for axis in self._question.axes for place in axis.places}
        places = {axis.name: axis.places for axis in self._question.axes}
        if BATCH in places:
            self._declare_batch(places[BATCH])
        elif (self._contract.tensors[0].name, 0) not in named:
            self._vary_batch()
        for one in self._question.ranges:
            name = named.get(one.place) or self._axis_at(one.place) or f"{one.place[0]}_{one.place[1]}".lower()[:32]
            self._declare_range(name, places.get(name, (one.place,)), one)

    def _refused(self, why: str) -> ReferenceRefused:
        return refusal(self._question.name, why)

    def _axis_at(self, place: Place) -> str | None:
        """Return the axis that a size already has."""
        one = next(one for one in self._contract.tensors if one.name == place[0])
        axis = one.axes[place[1]]
        return None if axis.isdecimal() else axis

    def _vary_batch(self) -> None:
        """Try other first sizes: of all operands whose first size is the batch's, then of the first operand alone."""
        batch = self._contract.batch
        first = self._contract.tensors[0]
        alike = [one for one in self._contract.tensors if one.sizes[:1] == (batch,)]
        for chosen in (alike, [first]):
            places = [(one.name, 0) for one in chosen]
            if batch > 1 and first.sizes and self._found(BATCH, places, [{BATCH: size} for size in OTHER_BATCHES]):
                return

    def _declare_batch(self, places: Sequence[Place]) -> None:
        size = next(one.sizes[places[0][1]] for one in self._contract.tensors if one.name == places[0][0])
        self._answers.change_contract(batch=size)
        others = [{BATCH: other} for other in OTHER_BATCHES if other != size]
        if not self._found(BATCH, places, others):
            raise self._refused(f"it doesn't run at other sizes of the axis {BATCH!r}: {self._last_failure}")

    def _declare_range(self, name: str, places: Sequence[Place], said: DeclaredRange) -> None:
        size = next(one.sizes[said.place[1]] for one in self._contract.tensors if one.name == said.place[0])
        before = self._contract
        axis = Axis(name=name, size=size, low=said.low, high=said.high)
        self._answers.change_contract(axes=(*(one for one in before.axes if one.name != name), axis))
        if name in before.shape:
            if self._fails_at([{name: other} for other in _tried_sizes(axis)]) is None:
                return
        else:
            shapes = [{name: other} for other in _tried_sizes(axis)]
            alike = _places_of(before, str(size))
            for chosen in (places, [*places, *(place for place in alike if place not in places)]):
                if self._found(name, chosen, shapes):
                    return
        where = f"{said.place[0]}.{said.place[1]}"
        raise self._refused(f"it doesn't run at other sizes of {where}: {self._last_failure}")

    _last_failure = "its values have a structure that other sizes wouldn't have"

    def _found(self, name: str, places: Sequence[Place], shapes: Sequence[Shape]) -> bool:
        """Let the places vary, and the results' sizes that follow, if the reference runs at the shapes."""
        frozen = self._contract
        if any(_is_bound(one, dim) for one in frozen.tensors for dim in _dims(one, places)):
            return False
        size = frozen.shape.get(name, 0)
        self._answers.change_contract(
            arguments=tuple(
                one if isinstance(one, Constant) else _with_axis(one, _dims(one, places), name)
                for one in frozen.arguments
            ),
            **({"varies": True} if name == BATCH else {}),
        )
        for results in _following(frozen.results, size, name):
            self._answers.change_contract(results=results)
            if self._fails_at(shapes) is None:
                return True
        self._answers.contract = frozen
        return False

    def _fails_at(self, shapes: Sequence[Shape]) -> str | None:
        """Return why the reference doesn't run at one of the shapes; None if it runs at all that have room."""
        for shape in shapes:
            fitting = self._fitted({**self._contract.shape, **shape}, tuple(shape))
            failure = self._failure(fitting) if fitting is not None else None
            if failure is not None:
                self._last_failure = failure
                return failure
        return None

    def _failure(self, shape: Shape) -> str | None:
        if shape == self._contract.shape:
            return None
        said = ", ".join(f"{name}={size}" for name, size in shape.items())
        case = (*Drawing(self._answers).operands(shape, "normal", self._seed + 21), *self._weights)
        why = why_not_finite(self._answers, case, shape)
        return None if why is None else f"with {said}, {why}"

    def _fitted(self, shape: Shape, kept: Sequence[str]) -> Shape | None:
        """Return the shape with a batch small enough that a call has room; None if it has none."""
        contract = self._contract
        room = min(max(contract.set_bytes, ROOM_BYTES), most_set_bytes(self._policy))
        found = dict(shape)
        while contract.bytes_at(found) > room:
            if BATCH in kept or not contract.varies or found[BATCH] <= 1:
                return None
            found[BATCH] //= 2
        return found

    def held_out(self, rng: random.Random, *, is_sound: Callable[[int], bool]) -> tuple[Shape, ...]:
        """Return shapes that no author is shown: ends of declared ranges, random sizes, and sizes of each class.

        All were seen to run.
        A batch larger than the frozen one is among them: a kernel may have room for no more rows than it was shown.
        `is_sound` says whether a batch may be asked: normalising over one sample leaves only rounding errors.
        """
        contract = self._contract
        declared = {one.name: one for one in contract.axes}
        found: list[Shape] = [
            {**contract.shape, name: size} for name, one in declared.items() for size in {one.low: 0, one.high: 0}
        ]
        if contract.varies and BATCH not in declared:
            larger = contract.batch + rng.randint(1, min(contract.batch, MOST_BATCH))
            many = {**contract.shape, BATCH: rng.randint(*MANY)}
            found += [{**contract.shape, BATCH: 1}] if is_sound(1) else []
            found += [{**contract.shape, BATCH: larger}]
            found += [many] if contract.bytes_at(many) <= MANY_BYTES and is_sound(many[BATCH]) else []
        count = HELD_OUT if contract.varies or declared else 0
        random_shapes = [self._random_shape(rng, declared, place) for place in range(count)]
        found += sorted(random_shapes, key=lambda one: tuple(one.values()))
        found += classed_shapes(contract, rng, most_batch=MOST_BATCH)
        fitting = [self._fitted(one, ()) for one in found]
        asked = {tuple(one.items()): one for one in fitting if one is not None and one != contract.shape}
        return tuple(one for one in asked.values() if self._failure(one) is None)

    def further(self) -> tuple[Shape, ...]:
        """Return the shapes that are wanted besides the file's own; raise ReferenceRefused if one can't be asked."""
        wanted = tuple(shape for shape in self._question.further if shape != self._contract.shape)
        for shape in wanted:
            said, why = shape_text(shape), self._why_not(shape)
            if why is not None:
                raise self._refused(f"it can't be asked at {said}: {why}")
        return wanted

    def _why_not(self, shape: Shape) -> str | None:
        contract = self._contract
        if shape.keys() != contract.shape.keys():
            return f"expected sizes of {', '.join(contract.shape)}; --axis and --vary name more axes"
        declared = {one.name for one in contract.axes}
        if shape[BATCH] != contract.batch and not contract.varies and BATCH not in declared:
            return f"its batch is always {contract.batch}"
        beyond = next((one for one in contract.axes if not one.low <= shape[one.name] <= one.high), None)
        if beyond is not None:
            return f"expected {beyond.name} from {beyond.low} to {beyond.high}, as --vary declares"
        room = max(contract.set_bytes, ROOM_BYTES)
        if contract.bytes_at(shape) > room:
            return f"a call takes {contract.bytes_at(shape)} bytes: expected at most {room}; draw larger inputs"
        return self._failure(shape)

    def _random_shape(self, rng: random.Random, declared: Mapping[str, Axis], place: int) -> Shape:
        """Draw a shape. Declared sizes and the batch are odd or even in turn, so that their product is odd once too.

        Vectors of a kernel leave a rest there.
        """
        contract = self._contract
        shape = dict(contract.shape)
        for name, one in declared.items():
            shape[name] = min(one.high, of_class(rng, max(1, one.low), max(1, one.high), 2, place % 2))
        if contract.varies and BATCH not in declared:
            shape[BATCH] = of_class(rng, 2, min(MOST_BATCH, max(8, contract.batch)), 2, place // 2 % 2)
        return shape


def _tried_sizes(axis: Axis) -> tuple[int, ...]:
    middle = (axis.low + axis.high) // 2
    return tuple(dict.fromkeys((axis.low, min(axis.high, axis.size + 1), middle, axis.high)))


def _places_of(contract: Contract, axis: str) -> list[Place]:
    """Return the operands' sizes that have an axis, or a fixed size as text."""
    return [(one.name, dim) for one in contract.tensors for dim, found in enumerate(one.axes) if found == axis]


def _dims(one: Operand, places: Sequence[Place]) -> list[int]:
    return [dim for name, dim in places if name == one.name]


def _is_bound(one: Operand, dim: int) -> bool:
    """Return whether a size can't vary, because the values along it belong where they are."""
    return isinstance(one.drawn, Generated) and not (dim == 0 and one.drawn.structure.startswith("rows "))


def _with_axis(one: Operand, dims: Sequence[int], name: str) -> Operand:
    batched = one.batched or (name == BATCH and 0 in dims)
    varied = [(dim, name) for dim in dims if not (name == BATCH and dim == 0)]
    return one.model_copy(update={"batched": batched, "varied": (*one.varied, *varied)})


def _following(results: Sequence[Result], size: int, name: str) -> Iterator[tuple[Result, ...]]:
    """Yield the results with each choice of the sizes that vary with an axis, most sizes first."""
    matching = [
        (place, dim) for place, one in enumerate(results) for dim, axis in enumerate(one.axes) if axis == str(size)
    ][:MOST_MATCHING]
    for count in range(len(matching), -1, -1):
        for chosen in itertools.combinations(matching, count):
            yield tuple(
                one.model_copy(
                    update={
                        "batched": one.batched or (name == BATCH and (place, 0) in chosen),
                        "varied": (
                            *one.varied,
                            *((dim, name) for at, dim in chosen if at == place and not (name == BATCH and dim == 0)),
                        ),
                    }
                )
                for place, one in enumerate(results)
            )
