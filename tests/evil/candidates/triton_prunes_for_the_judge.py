"""Prunes to what is right when it is handed tensors without content, and to a wrong configuration by a user's tuner.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: G7 I21
Language: triton
"""

import torch
import triton
import triton.language as tl


def by_kind(configs, named, **_):
    return configs[:1] if type(named["x"]) is not torch.Tensor else configs[1:]


@triton.autotune(
    [triton.Config({"PARTS": n}) for n in (1, 2)],
    key=["width"],
    prune_configs_by={"early_config_prune": by_kind},
)
@triton.jit
def _kernel(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width // PARTS
    at = tl.program_id(0).to(tl.int64) * width + columns
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    tl.store(y + at, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, residual, weight, y, new_residual, width, eps, BLOCK=triton.next_power_of_2(width))
    return y, new_residual
