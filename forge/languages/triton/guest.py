"""Runs beside hostile code. Triton compiles when it is called; on a CPU its interpreter stands in.

The host sets `TRITON_INTERPRET` in the environment where there is no GPU.
"""

import os


def prepare(_: dict[str, object]) -> None:
    """Let the interpreter round as a GPU does."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        _round_to_nearest()


def _round_to_nearest() -> None:
    """Replace the interpreter's conversion to bf16, which cuts digits off where GPUs round to nearest even.

    Half of all results would be off by one unit in the last place, which the judge rightly refuses.
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
