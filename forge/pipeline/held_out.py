"""Held-out shapes for one candidate alone, for authors to whom Forge tells its verdicts.

Many tries against one fixed set of shapes teach an author the set. Such an author's candidate is judged at shapes
that are drawn after its bytes are fixed, and that are never used again.
"""

import random

from forge.domain.own_operation import BATCH, Contract
from forge.domain.task import HeldOut, Task
from forge.domain.tensors import Shape
from forge.events import CandidateRejected, CandidateSubmitted, Recorded
from forge.lab.inputs.random_sizes import of_class
from forge.lab.inputs.seeded import Seeded
from forge.operations.operation import Operation
from forge.pipeline.create import draw_held_out

LABEL = "held out for one candidate"
"""Label of the random numbers that shapes are drawn with, so that no other question shares them."""
AGENT = "agent:"
"""Beginning of the name of an author that gets feedback: a search, a model or a command."""
MOST_BATCH = 64
"""Largest batch size that is drawn for a reference file, unless its own is larger. Chosen; time and memory of a
question grow with the batch."""
OWN_SHAPES = 4
"""Number of shapes that are drawn for a reference file, as many as its task holds out."""


def gets_feedback(submitted: Recorded[CandidateSubmitted]) -> bool:
    """Return whether a candidate is from an author to whom Forge tells its verdicts, try after try."""
    return submitted.actor.startswith(AGENT) or submitted.event.author.startswith(AGENT)


def drawn_for_one(task: Task, operation: Operation, fixed: HeldOut, seed: int) -> tuple[Shape, ...]:
    """Draw the held-out shapes of one candidate from `seed`.

    Return none if the task itself holds none out (`fixed`): such a task runs only at its own sizes.
    """
    rng = Seeded(seed, LABEL)
    if not fixed.shapes:
        return ()
    if operation.own is not None:
        return _of_reference_file(operation.own.contract, fixed, rng)
    return draw_held_out(task.shape, operation.row_axis, operation.reduced_axis, rng, task.domain).shapes


def _of_reference_file(contract: Contract, fixed: HeldOut, rng: random.Random) -> tuple[Shape, ...]:
    """Draw sizes in the declared ranges, and batches; no call is larger than one that the reference has run.

    The ends of declared ranges and one sample alone are no secret: the task's own shapes there come first.
    """
    room = max(contract.bytes_at(shape) for shape in (contract.shape, *fixed.shapes))
    found = [shape for shape in fixed.shapes if _is_at_an_end(contract, shape)]
    most_batch = max(shape[BATCH] for shape in fixed.shapes)
    for place in range(OWN_SHAPES):
        shape = dict(contract.shape)
        for axis in contract.axes:
            drawn = of_class(rng, max(1, axis.low), max(1, axis.high), 2, place % 2)
            shape[axis.name] = min(axis.high, drawn)
        if contract.varies and BATCH not in {axis.name for axis in contract.axes}:
            larger = place == 0 and most_batch > contract.batch
            low, high = (contract.batch + 1, most_batch) if larger else (2, max(8, min(MOST_BATCH, contract.batch)))
            shape[BATCH] = of_class(rng, low, high, 2, place // 2 % 2)
        if shape != contract.shape and shape not in found and contract.bytes_at(shape) <= room:
            found.append(shape)
    return tuple(found)


def _is_at_an_end(contract: Contract, shape: Shape) -> bool:
    """Return whether a size is at an end of its declared range, or the batch is one sample."""
    return shape[BATCH] == 1 or any(shape[axis.name] in (axis.low, axis.high) for axis in contract.axes)


def names_a_shape(rejected: CandidateRejected, report: dict[str, object]) -> bool:
    """Return whether a refusal tells one of the shapes that were drawn for its candidate alone."""
    shapes = report.get("held_out")
    assert isinstance(shapes, list)
    shown = report.get("counterexample") or {}
    assert isinstance(shown, dict)
    told = (shown.get("shape"), shown.get("shrunk_from"))
    return any(shape in told or _is_named(shape, rejected.reason.message) for shape in shapes)


def _is_named(shape: Shape, message: str) -> bool:
    return all(f"{axis}={size}" in message for axis, size in shape.items())
