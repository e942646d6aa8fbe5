"""Triton kernels of Forge that calibration times; they do as little as possible."""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]  # Triton has no types
def empty(x) -> None:  # type: ignore[no-untyped-def]  # its argument is Triton's
    """Do nothing, so that only the launch takes time."""


@triton.jit  # type: ignore[untyped-decorator]  # Triton has no types
def copy_again(x, y, n, passes, block: tl.constexpr) -> None:  # type: ignore[no-untyped-def]  # its arguments are Triton's
    """Copy `n` words `passes` times. Loads come from the last-level cache (.cg), not from the first-level one."""
    for _ in range(passes):
        at = tl.program_id(0) * block
        while at < n:
            offsets = at + tl.arange(0, block)
            tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n, cache_modifier=".cg"), mask=offsets < n)
            at += tl.num_programs(0) * block
