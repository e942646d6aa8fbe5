"""Runs beside hostile code. Triton compiles when it is called; on a CPU its interpreter replaces the compiler.

The host sets `TRITON_INTERPRET` in the environment if there is no GPU.
"""

import os
from collections.abc import Callable


def prepare(_: dict[str, object]) -> None:
    """Make the interpreter round and compute as a GPU does."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        _round_to_nearest()
        _compute_with_bf16()


def _round_to_nearest() -> None:
    """Replace the interpreter's conversion to bf16, which truncates, while GPUs round to nearest even.

    With truncation half of all results would be off by one unit in the last place, and the judge would refuse them.
    """
    import torch
    import triton.language as tl
    from triton._C.libtriton import ir
    from triton.runtime import interpreter

    cut = interpreter._convert_float

    def convert(data, source, target, rounding):  # type: ignore[no-untyped-def]  # numpy and triton have no types here
        if source == tl.float32 and target == tl.bfloat16 and rounding != ir.ROUNDING_MODE.RTZ:
            return torch.tensor(data, dtype=torch.float32).to(torch.bfloat16).view(torch.uint16).numpy()
        return cut(data, source, target, rounding)

    interpreter._convert_float = convert


def _compute_with_bf16() -> None:
    """Make the interpreter compute bf16 in fp32 and round once; by itself it takes the bits for integers."""
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    narrow_binary, narrow_fma = InterpreterBuilder.binary_op, InterpreterBuilder.create_fma

    def widened(builder: InterpreterBuilder, value: TensorHandle) -> TensorHandle:
        return builder.cast_impl(value, tl.float32) if value.dtype.scalar == tl.bfloat16 else value

    def rounded(builder: InterpreterBuilder, value: TensorHandle) -> TensorHandle:
        return value if value.data.dtype == np.bool_ else builder.cast_impl(value, tl.bfloat16)

    def binary(
        builder: InterpreterBuilder, lhs: TensorHandle, rhs: TensorHandle, op: Callable[..., object]
    ) -> TensorHandle:
        if lhs.dtype.scalar != tl.bfloat16:
            return narrow_binary(builder, lhs, rhs, op)
        return rounded(builder, narrow_binary(builder, widened(builder, lhs), widened(builder, rhs), op))

    def fma(builder: InterpreterBuilder, x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
        if z.dtype.scalar != tl.bfloat16:
            return narrow_fma(builder, x, y, z)
        return rounded(builder, narrow_fma(builder, *(widened(builder, one) for one in (x, y, z))))

    InterpreterBuilder.binary_op = binary
    InterpreterBuilder.create_fma = fma
