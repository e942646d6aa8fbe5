"""Says in which order a guest went through the sets of a chain, since each call's outputs choose the next set."""

from collections.abc import Sequence

from forge.sandbox.arena import Arena, SlotSet
from forge.sandbox.session import next_in_chain


def followed(arena: Arena, sets: Sequence[SlotSet], first: int, count: int) -> list[int]:
    """Return the sets of a chain in order, computed from the outputs in the arena."""
    order, waiting = [first], [index for index in range(len(sets)) if index != first]
    while len(order) < count:
        slots = sets[order[-1]]
        total = sum(arena.word_sum(slot) for slot in slots.outputs or slots.inputs)
        order.append(next_in_chain(total, waiting))
    return order
