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

from forge.domain.tensors import DTYPES, TORCH_NAMES
from forge.sandbox.arena import (
    PAGE_BYTES,
    RED_ZONE_BYTES,
    Arena,
    Form,
    How,
    SlotSet,
    Together,
    closed_after,
    closed_before,
    closed_to_writing,
)

ELEMENTS = tuple(TORCH_NAMES)
forms = st.lists(
    st.builds(
        Form, st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple), st.sampled_from(tuple(TORCH_NAMES))
    ),
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


@pytest.mark.parametrize("element", ["int8", "int32", "int64"])
def test_poison_is_no_quantised_number_and_no_index(arena: Arena, element: str) -> None:
    (one,) = arena.lay_out(1, (), (Form((5, 7), element),))  # type: ignore[arg-type]
    arena.poison(one.outputs[0])
    assert bool((arena.read(one.outputs[0]) <= -128).all())


@pytest.mark.parametrize("element", ELEMENTS)
def test_every_element_type_crosses_the_arena_unchanged(arena: Arena, element: str) -> None:
    form = Form((5, 7), element)  # type: ignore[arg-type]
    (one,) = arena.lay_out(1, (form,), ())
    slot = one.inputs[0]
    most = 2 if element == "bool" else 256  # a truth value of another byte has no meaning
    tensor = arena.read(slot).view(torch.uint8).random_(most).view(arena.read(slot).dtype)
    arena.write(slot, tensor)
    assert arena.holds(slot, tensor)
    assert torch.equal(arena.read(slot).view(torch.uint8), tensor.view(torch.uint8))


@pytest.mark.parametrize("dtype", [*DTYPES, "fp8_e4m3"])
def test_poison_is_nan_in_every_float_type(arena: Arena, dtype: str) -> None:
    (one,) = arena.lay_out(1, (), (Form((5, 7), dtype),))  # type: ignore[arg-type]
    arena.poison(one.outputs[0])
    assert bool(torch.isnan(arena.read(one.outputs[0])).all())


@pytest.mark.parametrize("first", [0, 1, 4])
def test_a_view_is_held_as_well_wherever_it_begins(arena: Arena, first: int) -> None:
    tensor = torch.arange(21, dtype=torch.bfloat16).reshape(7, 3)[first : first + 2]
    (one,) = arena.lay_out(1, (Form((2, 3), "bf16"),), ())
    arena.write(one.inputs[0], tensor)
    assert arena.holds(one.inputs[0], tensor)
    assert not arena.holds(one.inputs[0], tensor + 1)


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


BEGINNINGS = ("at_page", "elements_in", "ends_at_page")
LAYOUTS = {
    "gaps between rows": ((3, 4), (9, 1)),
    "columns before rows": ((3, 4), (1, 3)),
    "one row for all": ((3, 4), (0, 1)),
    "three axes with gaps": ((2, 3, 4), (27, 9, 1)),
}


@pytest.mark.parametrize("begins", BEGINNINGS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_layout_is_written_held_and_watched(arena: Arena, layout: str, begins: str, dtype: str) -> None:
    sizes, strides = LAYOUTS[layout]
    form = Form(sizes, dtype, strides=strides, begins=begins)  # type: ignore[arg-type]
    (one,) = arena.lay_out(1, (form,), (Form((5,), "fp32"),))
    slot = one.inputs[0]
    values = torch.arange(24.0)[: torch.Size(sizes).numel()].view(sizes).to(arena.read(slot).dtype)
    tensor = values[:1].expand(sizes) if 0 in strides else values
    arena.write(slot, tensor)
    assert torch.equal(arena.read(slot), tensor)
    assert arena.holds(slot, tensor)
    with guests_view(arena) as guest:
        for position in range(slot.offset, slot.offset + slot.size_bytes):
            guest[position] ^= 1
            assert not arena.holds(slot, tensor), "between elements as well"
            guest[position] ^= 1
        for position in (slot.offset - 1, slot.offset + slot.size_bytes):
            guest[position] ^= 1
            assert not arena.red_zones_intact()
            guest[position] ^= 1
    assert arena.red_zones_intact()


@pytest.mark.parametrize("count", [1, 13, 1024, 1025])
@pytest.mark.parametrize("dtype", DTYPES)
def test_beginnings_are_where_they_say(arena: Arena, count: int, dtype: str) -> None:
    forms = tuple(Form((count,), dtype, begins=begins) for begins in BEGINNINGS)  # type: ignore[arg-type]
    (one,) = arena.lay_out(1, forms, ())
    start, shifted, end = one.inputs
    itemsize = 4 if dtype == "fp32" else 2
    assert start.offset % PAGE_BYTES == 0
    assert (shifted.offset % PAGE_BYTES, shifted.storage_offset) == (itemsize, 1)
    assert (end.offset + end.size_bytes) % PAGE_BYTES == 0
    assert end.offset % itemsize == 0


def test_closed_pages_touch_no_operand_and_lie_against_each_input(arena: Arena) -> None:
    at_end = tuple(Form((count,), "fp32", begins="ends_at_page") for count in (1, 1024, 1500))
    sets = arena.lay_out(2, at_end, (Form((77,), "fp32"),))
    behind = closed_after(sets, arena.size_bytes)
    assert [page.start for page in behind[:-1]] == [s.offset + s.size_bytes for one in sets for s in one.inputs]
    assert behind[-1].end == arena.size_bytes
    sets = arena.lay_out(2, tuple(Form((count,), "fp32") for count in (1, 1024, 1500)), (Form((77,), "fp32"),))
    before = closed_before(sets)
    assert [page.end for page in before] == [s.offset for one in sets for s in one.inputs]
    for page in (*behind, *before, *closed_to_writing(sets)):
        assert page.start % PAGE_BYTES == page.end % PAGE_BYTES == 0
        assert page.start < page.end
    operands = operand_bytes(sets)
    outputs = {p for one in sets for s in one.outputs for p in range(s.offset, s.offset + s.size_bytes)}
    assert not operands & {p for page in before for p in range(page.start, page.end)}
    assert not outputs & {p for page in closed_to_writing(sets) for p in range(page.start, page.end)}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere files have no holes that can be looked for")
def test_a_byte_behind_the_last_operand_shows_wherever_it_is(arena: Arena) -> None:
    arena.lay_out(1, (Form((50_000,), "fp32"),), ())
    (one,) = arena.lay_out(1, (Form((5,), "fp32"),), ())
    assert arena.red_zones_intact(), "what the layout before left there is gone"
    with guests_view(arena) as guest:
        for position in (arena.size_bytes - 1, one.inputs[0].offset + 3 * PAGE_BYTES):
            assert guest[position] == 0
            assert arena.red_zones_intact(), "reading leaves no trace"
            guest[position] = 1
            assert not arena.red_zones_intact()
            guest[position] = 0
    assert arena.red_zones_intact()


HALVES: dict[How, tuple[int, int]] = {"one_after_the_other": (5, 15), "row_by_row": (10, 5)}
"""Elements from row to row, and from the first half to the second one, of halves [3, 5]."""


@pytest.mark.parametrize("how", HALVES)
@pytest.mark.parametrize("order", [(0, 2), (2, 0)])
def test_halves_of_one_tensor_hold_their_own_values(how: How, order: tuple[int, int]) -> None:
    arena, form = Arena(1 << 18), Form((3, 5), "fp32")
    (one,) = arena.lay_out(1, (form, Form((4,), "fp32"), form), (form,), together=Together(*order, how))
    first, second = (one.inputs[place] for place in order)
    row, apart = HALVES[how]
    assert (first.strides, second.strides) == ((row, 1), (row, 1))
    assert second.offset - first.offset == 4 * apart == 4 * second.storage_offset
    assert first.describe()["offset"] == second.describe()["offset"]
    values = [torch.randn(3, 5) for _ in range(2)]
    for slot, tensor in zip((first, second), values, strict=True):
        arena.write(slot, tensor)
    assert all(torch.equal(arena.read(slot), tensor) for slot, tensor in zip((first, second), values, strict=True))
    assert arena.red_zones_intact()
    for changed in (first, second):
        arena.write(changed, torch.zeros(3, 5))
        held = [arena.holds(slot, tensor) for slot, tensor in zip((first, second), values, strict=True)]
        assert held == [slot is not changed for slot in (first, second)]
        arena.write(changed, values[0 if changed is first else 1])


def test_a_storage_may_reach_beyond_its_tensor() -> None:
    """Its elements behind the tensor lie in the red zone, so a write to them shows."""
    arena = Arena(1 << 18)
    (one,) = arena.lay_out(1, (Form((3, 5), "fp32", begins="elements_in", elements_in=2),), ())
    (slot,) = one.inputs
    assert slot.behind > 0
    behind = slot.offset + slot.size_bytes + 4 * slot.behind - 1
    with guests_view(arena) as guest:
        guest[behind] ^= 1
    assert not arena.red_zones_intact()


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_place_in_a_page_counts_in_elements_of_any_size(element: str) -> None:
    """Beside an operand of bytes all begin up to a page of elements in: one of eight bytes each, up to 32 KiB."""
    arena = Arena(1 << 20)
    form = Form((7,), element, begins="elements_in", elements_in=PAGE_BYTES - 1)  # type: ignore[arg-type]
    sets = arena.lay_out(2, (form, Form((7,), "int8", begins="elements_in", elements_in=PAGE_BYTES - 1)), ())
    watched = sorted(set(range(last_watched(sets))) - operand_bytes(sets))
    with guests_view(arena) as guest:
        for position in (*watched[:: PAGE_BYTES - 1], watched[-1]):
            guest[position] ^= 1
            assert not arena.red_zones_intact(), position
            guest[position] ^= 1
    assert arena.red_zones_intact()
