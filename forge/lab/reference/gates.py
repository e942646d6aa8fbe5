"""Asks a candidate for a reference file the catalogue's questions, as far as foreign code allows them.

Sizes vary only if the reference was seen to run at others, values only within the range of its own inputs. Layouts,
NaN, exact sums and relations between answers aren't asked, since no one has declared what the answers should be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from forge.domain.evidence import WorkloadErrors
from forge.domain.own_operation import Contract
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import Placement
from forge.lab.calls.refusal import forbidden
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.determinism import DETERMINISM
from forge.lab.gates.difference import largest_difference
from forge.lab.gates.endurance import ENDURANCE
from forge.lab.gates.gate import Gate
from forge.lab.gates.leaks import LEAKS
from forge.lab.gates.replay import two_places, with_low_bits
from forge.lab.gates.signature import SIGNATURE
from forge.lab.gates.state import as_served
from forge.lab.inputs.seeded import Seeded
from forge.lab.observed import Case

if TYPE_CHECKING:
    import torch

DRAWS = 4
"""Number of draws of values like the reference's own."""
SWAPS = 2
"""Number of swaps in one random operand, and in one random weight, besides a swap in each of them at once."""
MOST_RETAINED, RETAINED_BYTES = 40, 2**24
"""Number of calls whose outputs are kept, and the bytes of their operands, at most."""
FEWEST_RETAINED = 5
"""Number of calls whose outputs are kept, at least, if they fit into the arena."""
ALIGNED_BYTES = 64
"""Number of bytes of which an operand's size must be a multiple, so that it can end at a page's end and be
aligned."""
BOUND = "1 x the bound, every element"
Tensors = tuple["torch.Tensor", ...]


def numerics(kernel: LoadedKernel) -> Finding:
    """Judge several draws of values like the reference's own."""
    return _judged(kernel, [kernel.case(kernel.shape) for _ in range(DRAWS)], "draws of values like its own")


def scales(kernel: LoadedKernel) -> Finding:
    """Judge one draw of every kind of values at which the reference stays finite."""
    kinds = _contract(kernel).kinds
    cases = [kernel.case(kernel.shape, kind) for kind in kinds]
    return _judged(kernel, cases, f"other kinds: {', '.join(kinds) or 'none'}")


def sizes(kernel: LoadedKernel) -> Finding:
    """Judge batch sizes that the author wasn't shown, if there are any."""
    if not kernel.held_out:
        return Passed(observed="the reference runs at its own sizes alone: none held out", threshold=BOUND)
    cases = [kernel.case(shape) for shape in (*kernel.held_out, *reversed(kernel.held_out))]
    return _judged(kernel, cases, f"batches held out, {len(kernel.held_out)} sizes")


def replay(kernel: LoadedKernel) -> Finding:
    """Ask related questions through the same tensors.

    Each operand alone is new, then the weights, then a few values within operands. Values change places at a distance
    that is a power of two, as in the catalogue's gate.
    """
    first = kernel.case(kernel.shape)
    other = kernel.case(kernel.shape)
    places = range(len(first.inputs))
    count = len(_contract(kernel).tensors)
    free = [sorted(set(group) - kernel.operation.still) for group in (places[:count], places[count:])]
    questions = [
        first,
        other,
        *(_with(first, {place: other.inputs[place]}) for place in places[:count]),
        _with(first, {place: other.inputs[place] for place in places[count:]}),
        *(_with(first, {place: _with_swap(first.inputs[place], kernel.rng) for place in group}) for group in free),
        *(_one_with_swap(first, group, kernel.rng) for group in free * SWAPS if group),
        first,
        with_low_bits(first, [place for place in places if _continuous(kernel, place)]),
        first,
    ]
    found = _judged(kernel, questions, "related questions answered afresh")
    return found if isinstance(found, Failed) else dataclasses.replace(found, threshold="every answer fresh")


def aliasing(kernel: LoadedKernel) -> Finding:
    """Make several calls, and read their outputs only after the last call."""
    few = RETAINED_BYTES // max(1, kernel.operation.operand_bytes(kernel.shape, kernel.dtype))
    count = max(FEWEST_RETAINED, min(MOST_RETAINED, few))
    while count > 1 and not kernel.fits(kernel.shape, count):
        count -= 1
    checked = kernel.check([kernel.case(kernel.shape) for _ in range(count)], retain=True)
    if isinstance(checked, Failed):
        return checked
    threshold = "every output keeps its values"
    return Passed(observed=f"{count} outputs kept and intact", threshold=threshold, errors=checked)


def state(kernel: LoadedKernel) -> Finding:
    """Ask, ask others in random order, and ask again; then ask once as a serving program does."""
    question = kernel.case(kernel.shape)
    others = [
        kernel.case(kernel.shape),
        *(kernel.case(kernel.shape, kind) for kind in _contract(kernel).kinds[:3]),
        *(kernel.case(shape) for shape in kernel.held_out[:2]),
    ]
    kernel.rng.shuffle(others)
    answers = []
    for case in (question, *others, question):
        observed = kernel.call([case])
        if isinstance(observed, Failed):
            return observed
        wrong = kernel.judge(observed[0])[1]
        if wrong is not None:
            return wrong
        answers.append(observed[0])
    furthest = largest_difference(kernel, answers[0], answers[-1])
    threshold = "the same answer before and after, within what rounding explains"
    if not furthest <= 1:
        failed = forbidden("STATE_CARRIED", "the same question has another answer after other calls", question)
        return dataclasses.replace(failed, observed=f"{furthest:.3g} x what rounding explains", threshold=threshold)
    served = as_served(kernel, question)
    if served is not None:
        return served
    return Passed(
        observed=f"{furthest:.3g} x what rounding explains, after {len(others)} other calls", threshold=threshold
    )


def bounds(kernel: LoadedKernel) -> Finding:
    """Call beside closed pages: in front of each operand, and behind it if it stays aligned."""
    placements = [Placement(pages="closed_before")]
    if all(form.at(0).size_bytes % ALIGNED_BYTES == 0 for form in kernel.forms(kernel.shape)[0]):
        placements.append(Placement(pages="closed_after"))
    if kernel.device == "cpu":
        for placement in placements:
            checked = kernel.check([kernel.case(kernel.shape)], placement=placement)
            if isinstance(checked, Failed):
                return checked
    closed = "" if kernel.device == "cpu" else "; no unreachable pages: inputs are copies in device memory"
    return Passed(
        observed=f"{kernel.calls} calls: inputs and red zones untouched{closed}",
        threshold="no byte outside the outputs written, none outside the operands read",
    )


def mutation(kernel: LoadedKernel) -> Finding:
    """Ask with inputs and weights that can't be written to."""
    on_host = kernel.device == "cpu"
    placement = Placement(pages="read_only") if on_host else Placement(return_inputs=True)
    checked = kernel.check([kernel.case(kernel.shape) for _ in range(2)], placement=placement)
    if isinstance(checked, Failed):
        return checked
    how = "from read-only pages" if on_host else "with the device's inputs compared afterwards"
    return Passed(observed=f"2 calls {how}", threshold="no write to an input")


def _judged(kernel: LoadedKernel, cases: Sequence[Case], what: str) -> Finding:
    errors: list[WorkloadErrors] = []
    for case in cases:
        checked = kernel.check([case])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    worst = max((one.bound_used for one in errors), default=0.0)
    return Passed(observed=f"{worst:.3g} x the bound over {len(cases)} {what}", threshold=BOUND, errors=tuple(errors))


def _contract(kernel: LoadedKernel) -> Contract:
    assert kernel.operation.own is not None
    return kernel.operation.own.contract


def _with(case: Case, changed: dict[int, torch.Tensor]) -> Case:
    inputs = tuple(changed.get(place, tensor) for place, tensor in enumerate(case.inputs))
    return dataclasses.replace(case, inputs=inputs)


def _continuous(kernel: LoadedKernel, place: int) -> bool:
    """Return whether an operand may have any value between its smallest and its largest."""
    contract = _contract(kernel)
    count = len(contract.tensors)
    if place < count:
        return contract.tensors[place].drawn.family in ("uniform", "normal")
    return place not in contract.still


def _one_with_swap(case: Case, places: Sequence[int], rng: Seeded) -> Case:
    place = rng.choice(places)
    return _with(case, {place: _with_swap(case.inputs[place], rng)})


def _with_swap(tensor: torch.Tensor, rng: Seeded) -> torch.Tensor:
    """Swap two random values of a tensor: sums, ends and extremes stay as they were."""
    flat = tensor.clone().reshape(-1)
    if flat.numel() >= 4:
        one, other = two_places(flat.numel(), rng)
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
"""Gates in order; they have the names of the catalogue's gates with the same questions."""
