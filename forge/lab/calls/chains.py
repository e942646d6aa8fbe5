"""Follows a guest through the sets of a chain, since each call's outputs choose the next set."""

from collections.abc import Sequence

from forge.sandbox.arena import Arena, SlotSet
from forge.sandbox.reply import Refused
from forge.sandbox.session import Session, next_in_chain


def followed(
    session: Session, arena: Arena, sets: Sequence[SlotSet], first: int, addresses: Sequence[Sequence[int]]
) -> list[int] | Refused:
    """Take each call's outputs from the stopped guest into the arena; return the sets of the calls, in order.

    `addresses` are those of each call's outputs, by the guest's word.
    """
    order, waiting = [first], [index for index in range(len(sets)) if index != first]
    for call in addresses:
        slots = sets[order[-1]]
        if refused := session.take(slots.outputs, call):
            return refused
        if len(order) < len(addresses):
            total = sum(arena.word_sum(slot) for slot in slots.outputs or slots.inputs)
            order.append(next_in_chain(total, waiting))
    return order
