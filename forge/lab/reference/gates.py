"""What a candidate for a reference file is asked: the catalogue's questions, as far as foreign code lets them be put.

Sizes vary only where the reference was seen to run at others, values only within what its own inputs showed. Layouts,
NaN, exact sums and relations between answers aren't asked: nobody declared what they should come to.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from forge.domain.evidence import WorkloadErrors
from forge.domain.own_operation import Contract
from forge.lab.calls.loaded_candidate import Probe
from forge.lab.calls.placement import Placement
from forge.lab.calls.refusal import forbidden
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.determinism import DETERMINISM
from forge.lab.gates.difference import apart
from forge.lab.gates.endurance import ENDURANCE
from forge.lab.gates.gate import Gate
from forge.lab.gates.leaks import LEAKS
from forge.lab.gates.replay import two_places, with_low_bits
from forge.lab.gates.signature import SIGNATURE
from forge.lab.gates.state import as_served
from forge.lab.observed import Case

if TYPE_CHECKING:
    import torch

DRAWS = 4
TURNS = 2
"""Of one operand by lot, and of one weight, besides all of them at once."""
RETAINED, RETAINED_BYTES = 40, 2**24
"""So many calls are kept, where their operands take no more than that; at least a few."""
RETAINED_AT_LEAST = 5
ALIGNED_BYTES = 64
"""An operand whose bytes are a multiple of this may end where a page ends and is aligned all the same."""
BOUND = "1 x the bound, every element"
Tensors = tuple["torch.Tensor", ...]


def numerics(probe: Probe) -> Finding:
    """Judge several draws of values like the reference's own."""
    return _judged(probe, [probe.case(probe.shape) for _ in range(DRAWS)], "draws of values like its own")


def scales(probe: Probe) -> Finding:
    """Judge one draw of every kind of values at which the reference stays finite."""
    kinds = _contract(probe).kinds
    cases = [probe.case(probe.shape, kind) for kind in kinds]
    return _judged(probe, cases, f"other kinds: {', '.join(kinds) or 'none'}")


def sizes(probe: Probe) -> Finding:
    """Judge batches that the author wasn't shown, where there are any."""
    if not probe.held_out:
        return Passed(observed="the reference runs at its own sizes alone: none held out", threshold=BOUND)
    cases = [probe.case(shape) for shape in (*probe.held_out, *reversed(probe.held_out))]
    return _judged(probe, cases, f"batches held out, {len(probe.held_out)} sizes")


def replay(probe: Probe) -> Finding:
    """Ask related questions through the same tensors: each operand alone is new, the weights, a few values within.

    Values change places at a distance that is a power of two, as in the catalogue's gate.
    """
    first = probe.case(probe.shape)
    other = probe.case(probe.shape)
    places = range(len(first.inputs))
    count = len(_contract(probe).tensors)
    free = [sorted(set(group) - probe.operation.still) for group in (places[:count], places[count:])]
    questions = [
        first,
        other,
        *(_with(first, {place: other.inputs[place]}) for place in places[:count]),
        _with(first, {place: other.inputs[place] for place in places[count:]}),
        *(_with(first, {place: _turned(first.inputs[place], probe.lot) for place in group}) for group in free),
        *(_one_turned(first, group, probe.lot) for group in free * TURNS if group),
        first,
        with_low_bits(first, [place for place in places if _continuous(probe, place)]),
        first,
    ]
    found = _judged(probe, questions, "related questions answered afresh")
    return found if isinstance(found, Failed) else dataclasses.replace(found, threshold="every answer fresh")


def aliasing(probe: Probe) -> Finding:
    """Make several calls, and read their outputs only when all have been made."""
    few = RETAINED_BYTES // max(1, probe.operation.operand_bytes(probe.shape, probe.dtype))
    count = max(RETAINED_AT_LEAST, min(RETAINED, few))
    while count > 1 and not probe.fits(probe.shape, count):
        count -= 1
    checked = probe.check([probe.case(probe.shape) for _ in range(count)], retain=True)
    if isinstance(checked, Failed):
        return checked
    threshold = "every output keeps its values"
    return Passed(observed=f"{count} outputs kept and intact", threshold=threshold, errors=checked)


def state(probe: Probe) -> Finding:
    """Ask, ask others in an order of chance, and ask again; then once as a program asks that serves requests."""
    question = probe.case(probe.shape)
    others = [
        probe.case(probe.shape),
        *(probe.case(probe.shape, kind) for kind in _contract(probe).kinds[:3]),
        *(probe.case(shape) for shape in probe.held_out[:2]),
    ]
    probe.lot.shuffle(others)
    answers = []
    for case in (question, *others, question):
        observed = probe.call([case])
        if isinstance(observed, Failed):
            return observed
        wrong = probe.judge(observed[0])[1]
        if wrong is not None:
            return wrong
        answers.append(observed[0])
    furthest = apart(probe, answers[0], answers[-1])
    threshold = "the same answer before and after, within what rounding explains"
    if not furthest <= 1:
        failed = forbidden("STATE_CARRIED", "the same question has another answer after other calls", question)
        return dataclasses.replace(failed, observed=f"{furthest:.3g} x what rounding explains", threshold=threshold)
    served = as_served(probe, question)
    if served is not None:
        return served
    return Passed(
        observed=f"{furthest:.3g} x what rounding explains, after {len(others)} other calls", threshold=threshold
    )


def bounds(probe: Probe) -> Finding:
    """Call beside closed pages: in front of each operand, and behind it where it stays aligned."""
    placements = [Placement(pages="closed_before")]
    if all(form.at(0).size_bytes % ALIGNED_BYTES == 0 for form in probe.forms(probe.shape)[0]):
        placements.append(Placement(pages="closed_after"))
    if probe.device == "cpu":
        for placement in placements:
            checked = probe.check([probe.case(probe.shape)], placement=placement)
            if isinstance(checked, Failed):
                return checked
    closed = "" if probe.device == "cpu" else "; no unreachable pages: inputs are copies in device memory"
    return Passed(
        observed=f"{probe.calls} calls: inputs and red zones untouched{closed}",
        threshold="no byte outside the outputs written, none outside the operands read",
    )


def mutation(probe: Probe) -> Finding:
    """Ask with inputs and weights that can't be written to."""
    on_host = probe.device == "cpu"
    placement = Placement(pages="read_only") if on_host else Placement(return_inputs=True)
    checked = probe.check([probe.case(probe.shape) for _ in range(2)], placement=placement)
    if isinstance(checked, Failed):
        return checked
    how = "from read-only pages" if on_host else "with the device's inputs compared afterwards"
    return Passed(observed=f"2 calls {how}", threshold="no write to an input")


def _judged(probe: Probe, cases: Sequence[Case], what: str) -> Finding:
    errors: list[WorkloadErrors] = []
    for case in cases:
        checked = probe.check([case])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    worst = max((one.bound_used for one in errors), default=0.0)
    return Passed(observed=f"{worst:.3g} x the bound over {len(cases)} {what}", threshold=BOUND, errors=tuple(errors))


def _contract(probe: Probe) -> Contract:
    assert probe.operation.own is not None
    return probe.operation.own.contract


def _with(case: Case, changed: dict[int, torch.Tensor]) -> Case:
    inputs = tuple(changed.get(place, tensor) for place, tensor in enumerate(case.inputs))
    return dataclasses.replace(case, inputs=inputs)


def _continuous(probe: Probe, place: int) -> bool:
    """Whether an operand's values may be any between its smallest and its largest."""
    contract = _contract(probe)
    count = len(contract.tensors)
    if place < count:
        return contract.tensors[place].drawn.family in ("uniform", "normal")
    return place not in contract.still


def _one_turned(case: Case, places: Sequence[int], lot: random.Random) -> Case:
    place = lot.choice(places)
    return _with(case, {place: _turned(case.inputs[place], lot)})


def _turned(tensor: torch.Tensor, lot: random.Random) -> torch.Tensor:
    """Two values drawn by lot change places: sums, ends and extremes stay as they were."""
    flat = tensor.clone().reshape(-1)
    if flat.numel() >= 4:
        one, other = two_places(flat.numel(), lot)
        flat[[one, other]] = flat[[other, one]]
    return flat.reshape(tensor.shape)


GATES: tuple[Gate, ...] = (
    SIGNATURE,
    Gate(name="replay", examine=replay),
    Gate(name="numerics", examine=numerics),
    LEAKS,
    Gate(name="aliasing", examine=aliasing),
    Gate(name="sizes", examine=sizes),
    Gate(name="scales", examine=scales),
    Gate(name="state", examine=state),
    DETERMINISM,
    ENDURANCE,
    Gate(name="bounds", examine=bounds),
    Gate(name="mutation", examine=mutation),
)
"""In order; the names are those of the catalogue's gates that ask the same."""
