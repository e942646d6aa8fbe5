"""The shared memory: every byte outside the operands is watched, and its size can't be changed."""

import fcntl
import itertools
import mmap
import os
import random
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.domain.tensors import DTYPES
from forge.sandbox.arena import RED_ZONE_BYTES, Arena, Form, SlotSet

forms = st.lists(
    st.builds(Form, st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple), st.sampled_from(DTYPES)),
    min_size=1,
    max_size=3,
).map(tuple)


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(1 << 20)
    yield made
    made.close()


def guests_view(arena: Arena) -> mmap.mmap:
    """The same bytes through the descriptor, as a guest maps them."""
    return mmap.mmap(arena.descriptor, arena.size_bytes)


def operand_bytes(sets: tuple[SlotSet, ...]) -> set[int]:
    return {
        position
        for one in sets
        for slot in (*one.inputs, *one.outputs)
        for position in range(slot.offset, slot.offset + slot.size_bytes)
    }


def last_watched(sets: tuple[SlotSet, ...]) -> int:
    return max(slot.offset + slot.size_bytes for one in sets for slot in (*one.inputs, *one.outputs)) + RED_ZONE_BYTES


@settings(max_examples=25, deadline=None)
@given(forms, forms, st.integers(1, 3), st.randoms(use_true_random=False))
def test_a_write_of_one_byte_outside_the_operands_shows(
    inputs: tuple[Form, ...], outputs: tuple[Form, ...], count: int, rng: random.Random
) -> None:
    made = Arena(1 << 20)
    sets = made.lay_out(count, inputs, outputs)
    operands, end = operand_bytes(sets), last_watched(sets)
    assert made.red_zones_intact()
    edges = [edge for position in operands for edge in (position - 1, position + 1)]
    watched = [p for p in (*rng.sample(range(end), 60), *edges, 0, end - 1) if p not in operands]
    with guests_view(made) as guest:
        for position in watched:
            before = guest[position]
            guest[position] = before ^ rng.randint(1, 255)
            assert not made.red_zones_intact(), position
            guest[position] = before
        for position in rng.sample(sorted(operands), min(20, len(operands))):
            guest[position] ^= 0xFF
    assert made.red_zones_intact()
    made.close()


@settings(max_examples=25, deadline=None)
@given(forms, st.integers(1, 3))
def test_operands_dont_overlap_and_stand_on_their_own_pages(inputs: tuple[Form, ...], count: int) -> None:
    made = Arena(1 << 20)
    slots = [slot for one in made.lay_out(count, inputs, inputs) for slot in (*one.inputs, *one.outputs)]
    for before, after in itertools.pairwise(slots):
        assert before.offset + before.size_bytes + RED_ZONE_BYTES <= after.offset
        assert after.offset % 4096 == 0
    made.close()


@pytest.mark.parametrize("dtype", DTYPES)
def test_poison_is_nan_in_every_element_type(arena: Arena, dtype: str) -> None:
    (one,) = arena.lay_out(1, (), (Form((5, 7), dtype),))  # type: ignore[arg-type]
    arena.poison(one.outputs[0])
    assert bool(torch.isnan(arena.read(one.outputs[0])).all())


def test_what_was_written_is_held_to_the_last_bit(arena: Arena) -> None:
    (one,) = arena.lay_out(1, (Form((3, 5), "fp32"),), ())
    slot, tensor = one.inputs[0], torch.tensor([[0.0, -0.0, float("nan"), 1.0, 2.0]] * 3)
    arena.write(slot, tensor)
    assert arena.holds(slot, tensor)
    with guests_view(arena) as guest:
        for position in range(slot.offset, slot.offset + slot.size_bytes):
            guest[position] ^= 1
            assert not arena.holds(slot, tensor)
            guest[position] ^= 1
    assert arena.holds(slot, tensor)


def test_what_is_read_is_a_copy(arena: Arena) -> None:
    (one,) = arena.lay_out(1, (), (Form((4,), "fp32"),))
    arena.write(one.outputs[0], torch.ones(4))
    taken = arena.read(one.outputs[0])
    arena.poison(one.outputs[0])
    assert bool((taken == 1).all())


def test_a_layout_that_doesnt_fit_is_refused(arena: Arena) -> None:
    with pytest.raises(ValueError, match="the arena has"):
        arena.lay_out(1, (Form((1 << 19,), "fp32"),), ())


def test_a_new_layout_watches_its_own_bytes_only(arena: Arena) -> None:
    arena.lay_out(2, (Form((100,), "fp32"),), ())
    (one,) = arena.lay_out(1, (Form((5000,), "fp32"),), ())
    with guests_view(arena) as guest:
        guest[one.inputs[0].offset : one.inputs[0].offset + 20000] = bytes(20000)
    assert arena.red_zones_intact()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no seals; there a guest has no walls either")
@pytest.mark.parametrize("size", [0, 4096, 1 << 40])
def test_a_guest_cant_change_the_size_of_what_the_host_maps(arena: Arena, size: int) -> None:
    with pytest.raises(PermissionError):
        os.ftruncate(arena.descriptor, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(arena.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    assert os.fstat(arena.descriptor).st_size == arena.size_bytes
