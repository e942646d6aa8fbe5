"""Why a call takes the fallback: a closed list of reasons, each with a sentence."""

from typing import Literal, NamedTuple, get_args

Reason = Literal[
    "off",
    "forked",
    "ranks",
    "withdrawn",
    "gradient",
    "tensor_type",
    "devices",
    "dtype",
    "operands",
    "scalars",
    "layout",
    "alignment",
    "overlap",
    "no_kernel",
    "own_function",
    "unfit_operation",
    "not_loadable",
    "backend",
    "unprepared_capture",
    "failed",
    "untraceable",
]
"""Reason why no promoted kernel runs.

- `off`: FORGE_ADOPT=off.
- `forked`: the process was forked after `adopt`.
- `ranks`: ranks of torch.distributed see different publications.
- `withdrawn`: a shadow call of this process found a wrong answer.
- `gradient`: a gradient is asked for.
- `tensor_type`: an operand is None or of a subclass of torch.Tensor, or lies on a device without promoted kernels.
- `devices`: the operands lie on several devices.
- `dtype`: an operand's element type isn't that of the operation.
- `operands`: the operands' sizes contradict each other.
- `scalars`: a scalar lies outside the values that were verified.
- `layout`: an operand isn't contiguous, nor in a layout that the kernel was verified with.
- `alignment`: an operand's address isn't aligned as the kernel asks.
- `overlap`: an operand that is written in place shares memory with another one.
- `no_kernel`: no kernel is promoted for this device, element type and shape.
- `own_function`: no kernel could answer, so the model's own function stays, and no operation is called.
- `unfit_operation`: an own operation that can't be called as a plain function.
- `not_loadable`: the kernel that answers can't be loaded here, or its files are damaged.
- `backend`: the caller's `backends` forbid the way in which the kernel would run.
- `unprepared_capture`: a CUDA graph is being captured, and the call wasn't prepared before.
- `failed`: the kernel raised an exception.
- `untraceable`: a compiler couldn't see the promoted source, so the operation stayed opaque in its program.
"""
REASONS: tuple[Reason, ...] = get_args(Reason)


class WhyNot(NamedTuple):
    """A reason with what was found."""

    reason: Reason
    detail: str
