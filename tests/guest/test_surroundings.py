"""What counts as a setting that a call left changed, read in this process as a guest reads it."""

import gc
from collections.abc import Iterator

import pytest
import torch
from torch.nn.attention import SDPBackend

from forge.guest import wire
from forge.guest.surroundings import look

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


def test_what_the_garbage_collector_is_told_to_leave_out_shows() -> None:
    before = look((), compares_frozen=True)
    assert before.status_after(()) == wire.DONE
    gc.freeze()
    try:
        assert before.status_after(()) == wire.CHANGED_A_SETTING
    finally:
        gc.unfreeze()
    assert before.status_after(()) == wire.DONE
