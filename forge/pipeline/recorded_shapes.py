"""Chooses the shapes and errors that an event records if it has no room for all.

Among shapes, the task's own and the ends of each axis come first. Among errors, those that used most of their bound
come first.
"""

from collections.abc import Sequence
from operator import itemgetter

from forge.domain.digest import Digest, canonical, digest_of
from forge.domain.evidence import WorkloadErrors
from forge.domain.tensors import Shape

SHAPES_BYTES = 3_500
"""Room for the shapes of one event in bytes. An event holds 16 KiB, and its gates and errors take up to 12 KiB;
operations with five axes are asked more shapes than fit."""


def recorded_shapes(shapes: Sequence[Shape], own: Sequence[Shape]) -> tuple[Shape, ...]:
    """Return as many shapes as an event has room for, in their order; `own` are the task's.

    The report has all of them. With fewer shapes on record a look-up answers in a smaller range, never in a larger
    one.
    """
    axes = shapes[0].keys() if shapes else ()
    ends = [pick(shapes, key=itemgetter(axis)) for axis in axes for pick in (max, min)]
    first = {digest_of(shape): shape for shape in (*(one for one in shapes if one in own), *ends, *shapes)}
    room, kept = SHAPES_BYTES, set[Digest]()
    for digest, shape in first.items():
        room -= len(canonical(shape)) + 1
        if room < 0:
            break
        kept.add(digest)
    return tuple(shape for shape in shapes if digest_of(shape) in kept)


def recorded_errors(worst: Sequence[WorkloadErrors], room_bytes: int) -> tuple[WorkloadErrors, ...]:
    """Return the errors that fit into the bytes, in their order; at least the one that used most of its bound.

    The report has all of them.
    """
    kept = set[int]()
    for place in sorted(range(len(worst)), key=lambda place: -worst[place].bound_used):
        room_bytes -= len(canonical(worst[place])) + 1
        if room_bytes < 0 and kept:
            break
        kept.add(place)
    return tuple(errors for place, errors in enumerate(worst) if place in kept)
