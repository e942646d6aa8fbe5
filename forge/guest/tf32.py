"""Runs beside hostile code. Makes Triton's interpreter multiply fp32 in TF32, as its compiler does by default.

By itself the interpreter is exact. A kernel that left the precision of a product at its default was accepted there,
and is too inexact on an NVIDIA GPU.
"""

_LOST_BITS = 13
"""Number of bits of fp32's significand that TF32 lacks."""


def multiply_as_a_gpu() -> None:
    """Round operands in fp32, unless a product asks for `input_precision="ieee"` or for three products in TF32."""
    import numpy as np
    import triton.language as tl
    from triton._C.libtriton import ir
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    exact = InterpreterBuilder.create_dot

    def rounded(value: TensorHandle) -> TensorHandle:
        if value.dtype.scalar != tl.float32:
            return value
        bits = np.ascontiguousarray(value.data).view(np.uint32)
        halfway = 2 ** (_LOST_BITS - 1) - 1 + ((bits >> _LOST_BITS) & 1)  # of two as near, the even one
        nearest = ((bits + halfway) & ~np.uint32(2**_LOST_BITS - 1)).view(np.float32)
        return TensorHandle(np.where(np.isfinite(value.data), nearest, value.data), value.dtype)

    def dot(
        builder: InterpreterBuilder, lhs: TensorHandle, rhs: TensorHandle, total: TensorHandle, *how: object
    ) -> TensorHandle:
        if how and how[0] == ir.INPUT_PRECISION.TF32:
            lhs, rhs = rounded(lhs), rounded(rhs)
        return exact(builder, lhs, rhs, total, *how)

    InterpreterBuilder.create_dot = dot
