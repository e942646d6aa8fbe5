"""Infers what a reference's arguments are drawn from: declared ranges, or a survey of the file's own get_inputs()."""

from __future__ import annotations

from collections.abc import Sequence

from forge.domain.input_kind import END_KINDS
from forge.domain.own_operation import Among, Constant, Family, Integers, Normal, Operand, Source, Uniform
from forge.lab.reference.answers import Answers
from forge.lab.reference.describe import Declared, SubmittedReference, refusal
from forge.lab.reference.families import family_of
from forge.lab.reference.reference_guest import Tensors
from forge.lab.reference.survey import Seen, related, survey
from forge.sandbox.reply import Refused

Argument = Operand | Constant
MIXES = 4
"""Number of pairs of draws in which one argument is put among the others of another draw. Chosen; each pair costs one
call of the reference for each argument that varies."""


def arguments_of(
    question: SubmittedReference, answers: Answers, seed: int, *, generator: bool
) -> tuple[Argument, ...]:
    """Return the arguments with the sources of their values; raise ReferenceRefused.

    `generator` says that the file has get_inputs().
    """
    arguments = answers.contract.arguments
    tensors = answers.contract.tensors
    if question.operands and len(question.operands) == len(tensors):
        declared = iter(question.operands)
        return tuple(one if isinstance(one, Constant) else _declared(one, next(declared)) for one in arguments)
    assert generator, "a description without declared operands has get_inputs"
    seen = survey(answers, seed)
    if isinstance(seen, Refused):
        why = seen.reason.message
        raise refusal(question.name, f"its get_inputs() gives other forms when it is called again: {why}")
    by_name = {one.name: one for one in question.operands}
    found = [
        _declared(one, by_name[one.name]) if one.name in by_name else _surveyed(one, values)
        for one, values in zip(tensors, seen, strict=True)
    ]
    coupled = _coupled(found, seen, answers, seed)
    ready = iter([one.model_copy(update={"coupled": place in coupled}) for place, one in enumerate(found)])
    return tuple(one if isinstance(one, Constant) else next(ready) for one in arguments)


def _declared(one: Operand, declared: Declared) -> Operand:
    return one.model_copy(update={"name": declared.name, "drawn": _declared_family(one, declared)})


def _declared_family(one: Operand, declared: Declared) -> Family:
    if declared.low is None or declared.high is None:
        return Among(values=(0.0, 1.0)) if one.element == "bool" else Normal(mean=0.0, deviation=1.0)
    if one.element is None:
        return Uniform(low=declared.low, high=declared.high)
    return Integers(low=int(declared.low), high=int(declared.high))


def _surveyed(one: Operand, seen: Seen) -> Operand:
    family = family_of(seen)
    source: Source = "file"
    if isinstance(family, Integers | Among) and not seen.reaches:
        source = "planted"
    return one.model_copy(update={"drawn": family, "source": source})


def _coupled(found: Sequence[Operand], seen: Sequence[Seen], answers: Answers, seed: int) -> frozenset[int]:
    """Return the places of arguments whose values fit only to those of other arguments.

    Either a relation between them holds in every draw, or the reference has no answer if one comes from another draw.
    """
    places = [place for place, one in enumerate(found) if one.source != "family" and not one.continuous]
    varied = [place for place in places if seen[place].varies]
    if len(seen) == 1 or not varied:
        return frozenset()
    pairs = [(one, other) for one in varied for other in varied if one < other and related(seen[one], seen[other])]
    coupled = {place for pair in pairs for place in pair}
    draws = [_drawn(answers, seed + place) for place in range(MIXES)] + [
        _drawn(answers, seed, one) for one in END_KINDS
    ]
    weights = answers.state(0)
    usable = [one for one in draws if one is not None and _is_sound(answers, (*one, *weights))]
    for place in varied:
        for one, other in zip(usable, [*usable[1:], *usable[:1]], strict=True):
            mixed = (*one[:place], other[place], *one[place + 1 :], *weights)
            if place not in coupled and not _is_sound(answers, mixed):
                coupled.add(place)
    return frozenset(coupled if len(coupled) != 1 else places)


def _drawn(answers: Answers, seed: int, pattern: str = "plain") -> Tensors | None:
    found = answers.try_generated(seed, pattern)  # type: ignore[arg-type]  # one of its patterns
    return None if isinstance(found, Refused) else found


def _is_sound(answers: Answers, case: Tensors) -> bool:
    answer = answers.asked("module", case, answers.contract.shape)
    return not isinstance(answer, Refused) and all(
        bool(one.isfinite().all()) for one in answer if one.is_floating_point()
    )
