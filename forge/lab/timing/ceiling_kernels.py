"""Triton kernels that calibration times: they are ours, and do as little as can be done."""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]  # Triton has no types
def empty(x) -> None:  # type: ignore[no-untyped-def]  # its argument is Triton's
    """Nothing: what remains is the launch."""


@triton.jit  # type: ignore[untyped-decorator]  # Triton has no types
def copy_again(x, y, n, passes, block: tl.constexpr) -> None:  # type: ignore[no-untyped-def]  # as above
    """Copy `n` words `passes` times; loads come from the last-level cache (.cg), not from the first."""
    for _ in range(passes):
        at = tl.program_id(0) * block
        while at < n:
            offsets = at + tl.arange(0, block)
            tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n, cache_modifier=".cg"), mask=offsets < n)
            at += tl.num_programs(0) * block
