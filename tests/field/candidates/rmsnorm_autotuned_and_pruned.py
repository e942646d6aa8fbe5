"""A norm whose tuner keeps the blocks that hold a row.

Language: triton
Operation: rmsnorm
Shape: {"batch": 4, "hidden_size": 64}
Domain: {"axes": {"hidden_size": {"most": 128}}}
Accepted: every block that its pruning leaves holds the row.
"""

import torch
import triton
import triton.language as tl


def long_enough(configs, named_args, **_):
    return [one for one in configs if one.kwargs["BLOCK"] >= named_args["width"]]


@triton.autotune(
    [triton.Config({"BLOCK": block}, num_warps=warps) for block in (32, 64, 128) for warps in (1, 4)],
    key=["width"],
    prune_configs_by={"early_config_prune": long_enough},
)
@triton.jit
def _kernel(x, weight, y, width, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    row = tl.load(x + at, mask=inside, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(row * row, axis=0) / width + eps)
    tl.store(y + at, row * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def rmsnorm(x, weight, eps):
    rows, width = x.shape
    if width > 128:
        raise ValueError(f"{width} columns: expected at most 128")
    y = torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, weight, y, width, eps)
    return y
