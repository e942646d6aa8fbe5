"""The harness's one loop: what it takes for an answer, and when it copies."""

import itertools
import os
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from forge.domain.tensors import ElementType
from forge.guest import channel, run, wire, word_sum
from forge.guest.layout import Layout, Operand
from forge.guest.retained_outputs import RELEASES_KEPT, RetainedOutputs
from forge.sandbox.arena import Arena, Form, Together


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], wire.Record]]:
    """The host's end of the reply channel."""
    read_end, write_end = os.pipe()
    monkeypatch.setattr(wire, "REPLIES", write_end)
    yield lambda: wire.unpack_record(os.read(read_end, 4096))
    os.close(read_end)
    os.close(write_end)


def lay_out(sets: int = 2) -> tuple[Arena, Layout]:
    arena = Arena(1 << 18)
    form = Form((3, 4), "fp32")
    placed = arena.lay_out(sets, (form,), (form,))
    described = [{"inputs": [o.inputs[0].describe()], "outputs": [o.outputs[0].describe()]} for o in placed]
    mapped = run.mmap.mmap(arena.descriptor, arena.size_bytes)
    for number, one in enumerate(placed):
        arena.write(one.inputs[0], torch.full((3, 4), float(number + 1)))
        arena.poison(one.outputs[0])
    told = {"scalars": 1, "closed": [], "return_inputs": False, "still": [], "weights": [0], "far": [], "apart": True}
    return arena, run.lay_out(mapped, {"sets": described, **told}, "cpu")


@pytest.fixture(autouse=True)
def nothing_retained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin each test as a guest of its own begins: without outputs that an earlier test's release retained."""
    monkeypatch.setattr(run, "_RETAINED", RetainedOutputs())


def go(*, count: int = 1, retain: bool = False) -> channel.Go:
    return channel.Go(call_id=9, function=0, first=0, count=count, retain=retain, scalars=(0.5, 0.0, 0.0, 0.0))


WRONG: dict[str, tuple[Callable[[torch.Tensor, float], object], int]] = {
    "none": (lambda _, __: None, wire.WRONG_TYPE),
    "a list": (lambda x, _: [x.clone()], wire.WRONG_TYPE),
    "a generator": (lambda x, _: (t for t in (x,)), wire.WRONG_TYPE),
    "an array": (lambda x, _: x.numpy().copy(), wire.WRONG_TYPE),
    "a number": (lambda _, __: 1.0, wire.WRONG_TYPE),
    "too many": (lambda x, _: (x.clone(), x.clone()), wire.WRONG_TYPE),
    "nothing at all": (lambda _, __: (), wire.WRONG_TYPE),
    "zeros without memory": (lambda x, _: torch._efficientzerotensor(x.shape), wire.WRONG_TYPE),
    "a parameter": (lambda x, _: torch.nn.Parameter(x.clone()), wire.WRONG_TYPE),
    "another shape": (lambda x, _: x.clone()[:1], wire.WRONG_FORM),
    "another rank": (lambda x, _: x.clone()[None], wire.WRONG_FORM),
    "fp64": (lambda x, _: x.double(), wire.WRONG_ELEMENT_TYPE),
    "whole numbers": (lambda x, _: x.int(), wire.WRONG_ELEMENT_TYPE),
}


@pytest.mark.parametrize("name", WRONG)
def test_anything_but_plain_tensors_of_the_right_form_is_refused(
    name: str, replies: Callable[[], wire.Record]
) -> None:
    function, status = WRONG[name]
    _, layout = lay_out()
    run.run(function, layout, go())
    answer = replies()
    assert (answer.call_id, answer.status, answer.completed) == (9, status, 0)
    assert bool(torch.isnan(layout.destinations[0][0]).all())


def test_outputs_are_copied_and_scalars_given(replies: Callable[[], wire.Record]) -> None:
    _, layout = lay_out()
    run.run(lambda x, scalar: x * scalar, layout, go(count=2))
    answer = replies()
    assert (answer.status, answer.completed) == (wire.DONE, 2)
    assert answer.outputs == (wire.OutputForm("float32", (3, 4), (4, 1)),)
    assert [float(d[0][0, 0]) for d in layout.destinations] == [0.5, 1.0]


def test_a_buffer_used_twice_shows_only_when_outputs_are_retained(replies: Callable[[], wire.Record]) -> None:
    buffer = torch.empty(3, 4)
    for retain, status, completed in ((False, wire.DONE, 2), (True, wire.ALIASES_AN_OUTPUT, 1)):
        _, layout = lay_out()
        run.run(lambda x, _: buffer.copy_(x), layout, go(count=2, retain=retain))
        answer = replies()
        assert (answer.status, answer.completed) == (status, completed)


def test_memory_that_is_taken_back_with_the_tensor_object_shows_where_outputs_are_retained(
    replies: Callable[[], wire.Record],
) -> None:
    made: list[tuple[weakref.ref[torch.Tensor], torch.UntypedStorage]] = []

    def kernel(x: torch.Tensor, _: float) -> torch.Tensor:
        storage = next((one for tensor, one in made if tensor() is None), x.clone().untyped_storage())
        y = torch.empty(0).set_(storage, 0, (3, 4), (4, 1)).copy_(x)
        made.append((weakref.ref(y), storage))
        return y

    _, layout = lay_out(3)
    run.run(kernel, layout, go(count=3, retain=True))
    assert replies().status == wire.ALIASES_AN_OUTPUT


def test_one_tensor_for_two_outputs_is_refused_unless_the_reference_may_do_so(
    replies: Callable[[], wire.Record],
) -> None:
    for apart, status in ((True, wire.ALIASES_AN_OUTPUT), (False, wire.DONE)):
        _, layout = lay_out(1)
        pairs = tuple((*one, *one) for one in layout.destinations)
        twice = layout._replace(destinations=pairs, apart=apart)
        run.run(lambda x, _: (x.clone(),) * 2, twice, go(retain=True))
        assert replies().status == status
    apart_in_one_storage = twice._replace(apart=True)
    run.run(lambda x, _: tuple(x.repeat(2, 1).split(3)), apart_in_one_storage, go(retain=True))
    assert replies().status == wire.DONE


def test_two_inputs_in_one_place_are_one_tensor(replies: Callable[[], wire.Record]) -> None:
    arena, form = Arena(1 << 18), Form((3, 4), "fp32")
    (placed,) = arena.lay_out(1, (form, form), (form,), together=Together(0, 1, "one_place"))
    arena.write(placed.inputs[1], torch.full((3, 4), 3.0))
    described = {"inputs": [one.describe() for one in placed.inputs], "outputs": [placed.outputs[0].describe()]}
    told = {"scalars": 0, "closed": [], "return_inputs": False, "still": [], "weights": [], "far": [], "apart": True}
    mapped = run.mmap.mmap(arena.descriptor, arena.size_bytes)
    layout = run.lay_out(mapped, {"sets": [described], **told}, "cpu")
    run.run(lambda x, other: x + other if x is other else x * 0, layout, go())
    assert replies().status == wire.DONE
    assert bool((layout.destinations[0][0] == 6).all())


RETURNS_INPUTS = {
    "the input": lambda x, _: x,
    "a view of it": lambda x, _: x.view(3, 4),
    "its detached self": lambda x, _: x.detach(),
}


@pytest.mark.parametrize("name", RETURNS_INPUTS)
def test_an_output_that_is_an_inputs_memory_is_refused_where_outputs_are_retained(
    name: str, replies: Callable[[], wire.Record]
) -> None:
    for retain, status in ((True, wire.ALIASES_AN_INPUT), (False, wire.DONE)):
        _, layout = lay_out()
        run.run(RETURNS_INPUTS[name], layout, go(retain=retain))
        assert replies().status == status


def test_a_flag_that_puts_the_sign_off_is_refused(replies: Callable[[], wire.Record]) -> None:
    _, layout = lay_out()
    run.run(lambda x, _: torch._neg_view(x.clone()), layout, go())
    assert replies().status == wire.WRONG_TYPE


def test_inputs_elsewhere_take_on_the_arenas_content_and_come_back_where_asked(
    replies: Callable[[], wire.Record],
) -> None:
    for returned in (True, False):
        arena, layout = lay_out()
        copies = tuple(
            tuple(Operand(one.tensor.clone(), one.storage.clone(), one.source) for one in operands)
            for operands in layout.operands
        )
        copies = tuple(
            tuple(Operand(c.storage.as_strided((3, 4), (4, 1)), c.storage, c.source) for c in one) for one in copies
        )
        elsewhere = Layout(
            inputs=tuple(tuple(c.tensor for c in one) for one in copies),
            operands=copies,
            destinations=layout.destinations,
            device=layout.device,
            scalars=1,
            return_inputs=returned,
            still=frozenset(),
            weights=frozenset({0}),
            apart=True,
            updated=layout.updated,
        )
        layout.operands[0][0].source.fill_(5.0)
        run.run(lambda x, _: x.add_(1).clone(), elsewhere, go())
        assert replies().status == wire.DONE
        assert bool((layout.destinations[0][0] == 6).all())
        assert bool((layout.operands[0][0].source == (6 if returned else 5)).all())
        arena.close()


def test_strides_are_told_as_they_are(replies: Callable[[], wire.Record]) -> None:
    _, layout = lay_out()
    run.run(lambda x, _: x.t().contiguous().t(), layout, go())
    assert replies().outputs[0].strides == (1, 3)


@pytest.fixture
def as_before() -> Iterator[None]:
    """The process's settings put back, whatever a call did to them."""
    state, threads, directory = torch.get_rng_state(), torch.get_num_threads(), Path.cwd()
    of_python, of_numpy, errors = random.getstate(), np.random.get_state(), np.geterr()
    yield
    torch.set_default_device(None)
    os.chdir(directory)
    random.setstate(of_python)
    np.random.set_state(of_numpy)
    np.seterr(**errors)
    torch.autograd.set_detect_anomaly(False)
    torch.backends.mkldnn.set_flags(True)
    torch.set_float32_matmul_precision("highest")
    _set_products("none")
    torch.set_rng_state(state)
    torch.set_num_threads(threads)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)


def _set_products(precision: str) -> None:
    torch.backends.mkldnn.matmul.fp32_precision = precision


LEFT_BEHIND: dict[str, tuple[Callable[[torch.Tensor], object], int]] = {
    "an axis more": (lambda x: x.unsqueeze_(0), wire.CHANGED_AN_INPUT),
    "axes exchanged": (lambda x: x.transpose_(0, 1), wire.CHANGED_AN_INPUT),
    "other memory": (lambda x: x.set_(torch.zeros(3, 4)), wire.CHANGED_AN_INPUT),
    "a gradient wanted": (lambda x: x.requires_grad_(True), wire.CHANGED_AN_INPUT),
    "a default type": (lambda _: torch.set_default_dtype(torch.float64), wire.CHANGED_A_SETTING),
    "gradients": (lambda _: torch.set_grad_enabled(not torch.is_grad_enabled()), wire.CHANGED_A_SETTING),
    "a seed": (lambda _: torch.manual_seed(1234567), wire.CHANGED_A_GENERATOR),
    "threads": (lambda _: torch.set_num_threads(torch.get_num_threads() + 1), wire.CHANGED_A_SETTING),
    "a precision": (lambda _: torch.set_float32_matmul_precision("medium"), wire.CHANGED_A_SETTING),
    "determinism": (lambda _: torch.use_deterministic_algorithms(True), wire.CHANGED_A_SETTING),
    "random numbers taken": (lambda _: torch.rand(3), wire.CHANGED_A_GENERATOR),
    "a seed set back": (lambda _: torch.manual_seed(torch.initial_seed()), wire.CHANGED_A_GENERATOR),
    "python's seed": (lambda _: random.seed(0), wire.CHANGED_A_GENERATOR),
    "numpy's seed": (lambda _: np.random.seed(0), wire.CHANGED_A_GENERATOR),
    "numpy's errors": (lambda _: np.seterr(all="raise"), wire.CHANGED_A_SETTING),
    "anomaly detection": (lambda _: torch.autograd.set_detect_anomaly(True), wire.CHANGED_A_SETTING),
    "oneDNN off": (lambda _: torch._C._set_mkldnn_enabled(False), wire.CHANGED_A_SETTING),
    "another precision": (lambda _: _set_products("bf16"), wire.CHANGED_A_SETTING),
    "a directory": (lambda _: os.chdir("/"), wire.CHANGED_A_SETTING),
    "another device": (lambda _: torch.set_default_device("meta"), wire.CHANGED_A_SETTING),
    "random numbers of its own": (lambda _: torch.rand(3, generator=torch.Generator()), wire.DONE),
    "a precision put back": (
        lambda _: torch.set_float32_matmul_precision(torch.get_float32_matmul_precision()),
        wire.DONE,
    ),
    "a form put back": (lambda x: x.unsqueeze_(0).squeeze_(0), wire.DONE),
}


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("cycles", [1, 3])
@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_inputs_and_settings_are_left_as_they_were_found(
    name: str, cycles: int, replies: Callable[[], wire.Record]
) -> None:
    change, status = LEFT_BEHIND[name]
    _, layout = lay_out()

    def function(x: torch.Tensor, _: float) -> torch.Tensor:
        y = x.detach().clone().reshape(3, 4)
        change(x)
        return y

    run.run(function, layout, go()._replace(cycles=cycles))
    assert replies().status == status
    assert torch.get_default_dtype() == torch.float32


def test_a_call_is_made_as_a_program_that_serves_makes_it_where_that_is_asked(
    replies: Callable[[], wire.Record],
) -> None:
    _, layout = lay_out()
    seen = []

    def function(x: torch.Tensor, _: float) -> torch.Tensor:
        served = torch.is_inference_mode_enabled(), isinstance(x, torch.nn.Parameter)
        seen.append((torch.tensor(1.5).dtype, *served, threading.current_thread() is threading.main_thread()))
        return x.clone()

    for asked in (wire.SERVED, wire.NO_WAYS):
        run.run(function, layout, go()._replace(ways=asked))
        assert replies().status == wire.DONE
    assert seen == [(torch.bfloat16, True, True, False), (torch.float32, False, False, True)]


def test_operands_are_a_programs_own_and_results_come_back_where_that_is_asked(
    replies: Callable[[], wire.Record],
) -> None:
    arena, layout = lay_out()
    layout = layout._replace(weights=frozenset())
    given, returned, contents = [], [], []

    def function(x: torch.Tensor, _: float) -> torch.Tensor:
        given.append(x)
        contents.append(float(x[0, 0]))
        returned.append(x.clone())
        return returned[-1]

    run.run(function, layout, go(count=2)._replace(ways=wire.Ways.OWN_MEMORY))
    assert replies().status == wire.DONE
    assert given[0].untyped_storage().resizable()
    assert given[1] is returned[0]
    assert contents == [1, 2]
    assert [float(one[0][0, 0]) for one in layout.destinations] == [1, 2]
    assert arena.red_zones_intact()


def test_a_weight_stays_the_same_tensor_and_a_write_to_it_is_seen(replies: Callable[[], wire.Record]) -> None:
    _, layout = lay_out()
    given = []

    def function(weight: torch.Tensor, _: float) -> torch.Tensor:
        given.append(weight)
        weight += 1
        return weight.clone()

    run.run(function, layout, go(count=2)._replace(ways=wire.Ways.OWN_MEMORY | wire.Ways.PARAMETERS))
    assert replies().status == wire.DONE
    assert given[0] is given[1]
    assert isinstance(given[0], torch.nn.Parameter)
    assert [float(one[0][0, 0]) for one in layout.inputs] == [2, 3]


def test_an_output_that_a_later_call_at_another_shape_overwrites_is_noticed(
    replies: Callable[[], wire.Record],
) -> None:
    block, handed_out = torch.full((4, 3, 4), torch.nan), itertools.count()

    def from_a_block(x: torch.Tensor, _: float) -> torch.Tensor:
        return block[next(handed_out) % 4].copy_(x)

    _, layout = lay_out()
    run.run(from_a_block, layout, go(count=2, retain=True))
    assert replies().status == wire.DONE
    for status in (wire.DONE, wire.DONE, wire.CHANGED_AN_OUTPUT):
        _, layout = lay_out()
        run.run(from_a_block, layout, go()._replace(first=1))
        assert replies().status == status


def test_outputs_are_kept_for_some_releases_and_only_while_they_are_small() -> None:
    small, large = torch.zeros(4), torch.zeros(2**19)
    for output, noticed in ((small, True), (large, False)):
        kept = RetainedOutputs()
        kept.keep([output])
        assert kept.is_intact()
        output += 1
        assert kept.is_intact() is not noticed
    for _ in range(RELEASES_KEPT):
        kept.is_intact()
    kept.keep([small])
    for _ in range(RELEASES_KEPT):
        assert kept.is_intact()
    small += 1
    assert kept.is_intact()


@pytest.mark.parametrize("rows", [1, 5])
def test_a_column_of_a_larger_tensor_is_kept_as_an_output(rows: int) -> None:
    for column in (torch.full((rows, 4), torch.nan)[:, 0], torch.zeros(rows, 4, dtype=torch.int64)[:, 1:2]):
        kept = RetainedOutputs()
        kept.keep([column])
        assert kept.is_intact()
        column += 1 if column.dtype == torch.int64 else 0
        assert kept.is_intact() is (column.dtype != torch.int64)


def test_in_a_long_row_every_answer_has_a_place_of_its_own(replies: Callable[[], wire.Record]) -> None:
    _, layout = lay_out()
    room = torch.full((5, 3, 4), float("nan"))
    row = layout._replace(destinations=((room,), *layout.destinations[1:]))
    calls = iter(range(5))
    run.run(lambda x, _: torch.full_like(x, float(next(calls))), row, go(retain=True)._replace(cycles=5))
    assert (replies().status, next(calls, None)) == (wire.DONE, None)
    assert room[:, 0, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def raising(x: torch.Tensor, _: float) -> torch.Tensor:
    raise ValueError(x.shape)


def raising_with_less_precision(x: torch.Tensor, _: float) -> torch.Tensor:
    torch.set_float32_matmul_precision("medium")
    raise ValueError(x.shape)


def test_an_exception_that_leaves_nothing_changed_goes_on() -> None:
    _, layout = lay_out()
    with pytest.raises(ValueError, match=r"3, 4"):
        run.run(raising, layout, go())


def test_an_exception_that_leaves_a_setting_changed_is_told_apart(
    replies: Callable[[], wire.Record],
) -> None:
    precision = torch.get_float32_matmul_precision()
    _, layout = lay_out()
    try:
        run.run(raising_with_less_precision, layout, go())
    finally:
        torch.set_float32_matmul_precision(precision)
    assert replies().status == wire.CHANGED_A_SETTING


@pytest.mark.parametrize("sizes", [(), (1,), (3, 0), (7,), (3, 5), (4, 256), (5, 2, 3), (1, 2**17), (2**18 + 1,)])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp64", "int64", "int8", "fp8_e4m3", "bool"])
def test_host_and_guest_add_the_same_words_up(dtype: ElementType, sizes: tuple[int, ...]) -> None:
    """Sums that differ would lead the two to different sets."""
    arena = Arena(1 << 22)
    (one,) = arena.lay_out(1, (), (Form(sizes, dtype),))
    slot = one.outputs[0]
    if slot.size_bytes:
        values = torch.randint(0, 2 if dtype == "bool" else 256, (slot.size_bytes,), dtype=torch.uint8)
        arena.bytes_of(slot).copy_(values)
    answer = arena.read(slot)
    behind = torch.cat((answer.reshape(-1)[:1], answer.reshape(-1)))[1:].view(sizes) if answer.numel() else answer
    spread = torch.empty_strided((1, *sizes), (5, *answer.stride()), dtype=answer.dtype).copy_(answer[None])
    assert spread.is_contiguous()  # one row may have any stride
    for tensor in (answer, behind, spread):  # the second begins between two words of its storage
        assert (word_sum.total(word_sum.words(tensor)) - arena.word_sum(slot)) % 2**64 == 0
