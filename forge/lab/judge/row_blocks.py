"""Splits an output into blocks of rows, so that a processor judges each one within its cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from forge.lab.parallel import parallel_map
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")
SERIAL_UP_TO = 32
"""Number of blocks up to which one thread judges them all: a million elements, in about 50 ms."""
BLOCK_ELEMENTS = 2**15
"""Number of elements in a block, at most, if a row has fewer. An fp64 intermediate of a block takes 256 KiB."""


def row_blocks(got: torch.Tensor) -> list[slice]:
    """Return the blocks of rows of an output [..., width], over its leading axes flattened.

    It is one block if the output is small, has one row, or lies on a device.
    """
    if got.dim() < 2 or got.numel() <= BLOCK_ELEMENTS or got.device.type != "cpu":
        return [slice(None)]
    width = got.shape[-1]
    step = max(1, BLOCK_ELEMENTS // width)
    return [slice(start, start + step) for start in range(0, got.numel() // width, step)]


def for_each_block(
    work: Callable[[torch.Tensor, Expectation, torch.Tensor], Result],
    blocks: list[slice],
    got: torch.Tensor,
    expectation: Expectation,
    baseline: torch.Tensor,
) -> list[Result]:
    """Return what `work` says of each block of rows.

    Its tensors are [rows of the block, width] if there are several blocks, else [..., width] as they are.
    """
    if len(blocks) == 1:
        return [work(got, expectation, baseline)]

    def of_block(block: slice) -> Result:
        def rows(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.expand_as(got).flatten(0, -2)[block]

        def optional(tensor: torch.Tensor | None) -> torch.Tensor | None:
            return None if tensor is None else rows(tensor)

        part = replace(
            expectation,
            value=rows(expectation.value),
            scale=rows(expectation.scale),
            last_factor=optional(expectation.last_factor),
            drift=optional(expectation.drift),
        )
        return work(rows(got), part, rows(baseline))

    return parallel_map(of_block, blocks, serial_up_to=SERIAL_UP_TO)
