"""What counts as a setting that a call left changed, read in this process as a guest reads it."""

import gc
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn.attention import SDPBackend

from forge.guest import wire
from forge.guest.surroundings import forget, look

MATH, FLASH, EFFICIENT, CUDNN = (
    one.value
    for one in (
        SDPBackend.MATH,
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.CUDNN_ATTENTION,
    )
)


@pytest.fixture(autouse=True)
def order() -> Iterator[list[int]]:
    before = torch._C._get_sdp_priority_order()
    yield before
    torch._C._set_sdp_priority_order(before)


@pytest.mark.parametrize(
    ("first", "changed"), [(CUDNN, False), (MATH, True), (EFFICIENT, True)], ids=["cudnn", "math", "efficient"]
)
def test_only_torch_itself_puts_cudnns_attention_first(order: list[int], first: int, changed: bool) -> None:
    before = look(()).settings
    torch._C._set_sdp_priority_order([first, *(one for one in order if one != first)])
    assert (look(()).settings != before) == changed


@pytest.mark.parametrize(
    "switch",
    [
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp,
        torch._C._set_cublas_allow_fp16_accumulation,
        torch._C._set_mkldnn_deterministic,
        torch._C._set_view_replay_enabled,
        lambda on: torch._C._set_cudnn_allow_tf32(not on),
    ],
    ids=["attention", "cublas", "onednn", "views", "cudnn"],
)
def test_a_switch_of_torchs_that_is_left_shows_and_one_put_back_does_not(
    switch: Callable[[bool], object],
) -> None:
    before = look(())
    switch(True)
    try:
        assert before.status_after(()) == wire.CHANGED_A_SETTING
    finally:
        switch(False)
    assert before.status_after(()) == wire.DONE


def test_subclasses_of_tensors_that_are_asked_no_more_show() -> None:
    before, off = look(()), torch._C.DisableTorchFunction()
    with off:
        assert before.status_after(()) == wire.CHANGED_A_SETTING
    assert before.status_after(()) == wire.DONE


def test_what_the_garbage_collector_is_told_to_leave_out_shows() -> None:
    before = look((), thorough=True)
    assert before.status_after(()) == wire.DONE
    gc.freeze()
    try:
        assert before.status_after(()) == wire.CHANGED_A_SETTING
    finally:
        gc.unfreeze()
    assert before.status_after(()) == wire.DONE


@pytest.mark.parametrize("timer", [signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF])
def test_a_timer_that_was_started_shows_and_one_that_only_runs_on_does_not(timer: int) -> None:
    stopped = look(())
    signal.setitimer(timer, 3600)
    try:
        assert stopped.status_after(()) == wire.CHANGED_A_SETTING
        running = look(())
        assert running.status_after(()) == wire.DONE
    finally:
        signal.setitimer(timer, 0)
    assert running.status_after(()) == wire.CHANGED_A_SETTING


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="this system doesn't show mappings")
@pytest.mark.parametrize("thorough", [True, False])
def test_a_page_of_an_operand_that_no_forked_process_gets_shows_in_a_thorough_look(thorough: bool) -> None:
    with mmap.mmap(-1, 3 * mmap.PAGESIZE) as pages:
        operand = torch.frombuffer(pages, dtype=torch.float32)
        before = look([operand], thorough=thorough)
        assert before.status_after([operand]) == wire.DONE
        pages.madvise(mmap.MADV_DONTFORK, mmap.PAGESIZE, mmap.PAGESIZE)
        assert before.status_after([operand]) == (wire.CHANGED_AN_INPUT if thorough else wire.DONE)
        del operand


def test_in_a_row_of_calls_the_settings_are_read_once_and_a_change_between_them_shows() -> None:
    first = look((), in_a_row=True)
    assert first.status_after(()) == wire.DONE
    before = os.getcwd()
    os.chdir("/")  # as another thread may
    try:
        assert look((), in_a_row=True).status_after(()) == wire.CHANGED_A_SETTING
        assert look((), in_a_row=True).status_after(()) == wire.DONE
    finally:
        os.chdir(before)
    assert look(()).status_after(()) == wire.DONE
    assert look((), in_a_row=True).status_after(()) == wire.DONE
    forget()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")
def test_a_tool_that_watches_pythons_calls_shows() -> None:
    before = look(())
    sys.monitoring.use_tool_id(4, "a kernel's")
    sys.monitoring.set_events(4, sys.monitoring.events.PY_START)
    try:
        assert before.status_after(()) == wire.CHANGED_A_SETTING
    finally:
        sys.monitoring.set_events(4, 0)
        sys.monitoring.free_tool_id(4)
    assert before.status_after(()) == wire.DONE
