"""Prunes by the width, which isn't in the tuner's key: what was tuned at a short row cuts a longer one.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
Domain: {"axes": {"hidden_size": {"most": 256}}}
"""

import torch
import triton
import triton.language as tl


def long_enough(configs, named_args, **_):
    return [one for one in configs if one.kwargs["BLOCK"] >= named_args["width"]]


@triton.autotune(
    [triton.Config({"BLOCK": block}) for block in (64, 128, 256, 512)],
    key=[],
    prune_configs_by={"early_config_prune": long_enough},
)
@triton.jit
def _kernel(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    tl.store(y + at, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    if width > 256:
        raise ValueError("expected at most 256")
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, residual, weight, y, new_residual, width, eps)
    return y, new_residual
