"""Runs beside hostile code. Makes calls in the ways in which programs make them, as the host asks.

A program records gradients or not, and is in inference mode or not. Its operands lie in memory of torch's own. It has
the same weight in all calls, and may pass a result to the next call. A kernel that behaves by that would otherwise
always meet the same.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import torch

from . import surroundings
from .wire import NO_WAYS, Ways

if TYPE_CHECKING:
    from .layout import Layout, Operand

THREAD_ATTEMPTS = 50
"""Number of times that the start of a thread is tried. All guests of a machine share one limit of threads. With
`THREAD_WAIT_S` between them they take 5 s."""
THREAD_WAIT_S = 0.1
"""Seconds between two tries. Chosen; a shorter one asks the kernel more often."""
_OTHER_TYPE = torch.bfloat16
"""Torch's default type where it isn't the usual one."""
_LAST = [NO_WAYS]
"""Ways of the last calls."""
_WEIGHTS: dict[tuple[object, ...], torch.Tensor] = {}
"""Weights by place and form, for all calls in these ways: torch's own memory, and parameters."""


def make(calls: Callable[[Layout], None], layout: Layout, ways: Ways) -> None:
    """Make the calls in these ways; on a GPU they always come from this thread."""
    if ways != _LAST[0]:
        surroundings.forget()
        _LAST[0] = ways
        _WEIGHTS.clear()
    torch.set_default_dtype(_OTHER_TYPE if ways & Ways.OTHER_TYPE else torch.float32)
    try:
        if ways & Ways.THREAD and layout.device == "cpu":
            _in_another_thread(lambda: _make(calls, layout, ways))
        else:
            _make(calls, layout, ways)
    finally:
        torch.set_default_dtype(torch.float32)


def _make(calls: Callable[[Layout], None], layout: Layout, ways: Ways) -> None:
    with contextlib.ExitStack() as stack:
        if ways & Ways.INFERENCE:
            stack.enter_context(torch.inference_mode())
        else:
            stack.enter_context(torch.set_grad_enabled(bool(ways & Ways.GRADIENTS)))
        if ways & Ways.COLLECTED:
            gc.enable()
            stack.callback(gc.disable)
        layout = _in_own_memory(layout) if ways & Ways.OWN_MEMORY else layout
        calls(_with_parameters(layout) if ways & Ways.PARAMETERS else layout)


def _in_another_thread(call: Callable[[], None]) -> None:
    """Make the call in a new thread; other guests of a busy machine may leave no room for one at first."""
    for attempt in range(THREAD_ATTEMPTS):
        with ThreadPoolExecutor(1) as another:
            try:
                started = another.submit(call)
            except RuntimeError:
                if attempt + 1 == THREAD_ATTEMPTS:
                    raise
                time.sleep(THREAD_WAIT_S)
                continue
            started.result()
            return


def _in_own_memory(layout: Layout) -> Layout:
    """Return the layout with inputs in torch's own memory, filled from the arena before a call and returned after it.

    The weights of all sets are the same tensors.
    """
    operands = tuple(tuple(_own(layout, place, one) for place, one in enumerate(each)) for each in layout.operands)
    inputs = tuple(tuple(one.tensor for one in each) for each in operands)
    return layout._replace(operands=operands, inputs=inputs, return_inputs=True)


def _own(layout: Layout, place: int, operand: Operand) -> Operand:
    """Return an operand with another tensor and the same place in the arena, if it fills that place."""
    given = operand.tensor
    if not given.numel() or operand.source.numel() != given.numel():
        return operand
    form = place, given.shape, given.dtype
    tensor = _WEIGHTS.get(form) if place in layout.weights else None
    if tensor is None:
        tensor = torch.empty(given.shape, dtype=given.dtype, device=layout.device)
    if place in layout.weights:
        _WEIGHTS[form] = tensor
    return operand._replace(tensor=tensor, storage=tensor.view(-1))


def _with_parameters(layout: Layout) -> Layout:
    """Return the layout with a parameter for each weight, as in a module."""

    def given(place: int, tensor: torch.Tensor) -> torch.Tensor:
        if place not in layout.weights:
            return tensor
        form = place, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
        if form not in _WEIGHTS:
            _WEIGHTS[form] = torch.nn.Parameter(tensor, requires_grad=False)
        return _WEIGHTS[form]

    inputs = tuple(tuple(given(place, one) for place, one in enumerate(each)) for each in layout.inputs)
    return layout._replace(inputs=inputs)


def handed_on(layout: Layout, ways: Ways, index: int, outputs: tuple[object, ...]) -> Layout:
    """Return the layout in which a set's inputs lie in the last call's outputs, where these have their forms."""
    if index >= len(layout.operands) or not ways & Ways.OWN_MEMORY:
        return layout
    waiting = [one for one in outputs if isinstance(one, torch.Tensor) and _can_be_given(one)]
    operands, inputs = list(layout.operands[index]), list(layout.inputs[index])
    for place, operand in reversed(list(enumerate(operands))):  # a residual comes last, among results as well
        fitting = [one for one in waiting if one.shape == operand.tensor.shape and one.dtype == operand.tensor.dtype]
        if fitting and place not in layout.weights and operand.storage is not operand.source:
            last = fitting[-1]
            waiting = [one for one in waiting if one is not last]
            operands[place] = operand._replace(tensor=last, storage=torch.Tensor.view(last, -1))
            inputs[place] = last
    every, given = list(layout.operands), list(layout.inputs)
    every[index], given[index] = tuple(operands), tuple(inputs)
    return layout._replace(operands=tuple(every), inputs=tuple(given))


def passed(layout: Layout, inputs: tuple[torch.Tensor, ...], ways: Ways, *, first: bool) -> tuple[torch.Tensor, ...]:
    """Return the inputs; those of a first call have new objects for activations, which nothing but the call holds."""
    if not (first and ways & Ways.OWN_MEMORY):
        return inputs
    return tuple(one if place in layout.weights else torch.Tensor.detach(one) for place, one in enumerate(inputs))


def _can_be_given(output: torch.Tensor) -> bool:
    """Return whether the harness can write the next content into an output. An output may have methods of its own."""
    tensor = torch.Tensor
    writable = tensor.is_inference(output) == torch.is_inference_mode_enabled() and not output.requires_grad
    return writable and tensor.is_contiguous(output) and tensor.numel(output) > 0
