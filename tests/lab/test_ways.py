"""The ways in which calls are made: any two of them occur together, each alone, and neither."""

import itertools

from forge.guest.wire import NO_WAYS, SERVED, Ways
from forge.lab.calls.ways import at_random, in_pairs
from forge.lab.inputs.seeded import Seeded


def test_any_two_ways_are_tried_together_each_alone_and_neither() -> None:
    tried = list(in_pairs(Seeded(1, "ways"), gradients=True))
    pairs = [pair for pair in itertools.combinations(Ways, 2) if Ways.GRADIENTS not in pair]
    for one, other in pairs:
        assert len({(one in ways, other in ways) for ways in tried}) == 4, (one, other)


def test_gradients_are_recorded_outside_inference_mode_alone_and_never_where_weights_may_need_them() -> None:
    tried = list(in_pairs(Seeded(1, "ways"), gradients=True))
    assert any(Ways.GRADIENTS in ways for ways in tried)
    assert not any(Ways.GRADIENTS | Ways.INFERENCE in ways for ways in tried)
    rng = Seeded(1, "ways")
    without = [*in_pairs(rng, gradients=False), *(at_random(rng, gradients=False) for _ in range(50))]
    assert not any(Ways.GRADIENTS in ways for ways in without)


def test_usual_calls_differ_in_what_changes_no_operand() -> None:
    rng = Seeded(1, "ways")
    usual = {at_random(rng, gradients=True) for _ in range(100)}
    assert usual == {NO_WAYS, Ways.GRADIENTS, Ways.COLLECTED, Ways.GRADIENTS | Ways.COLLECTED}
    assert not any(ways & (SERVED & ~Ways.COLLECTED) for ways in usual)
