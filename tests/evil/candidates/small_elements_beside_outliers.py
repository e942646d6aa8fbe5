"""In a row with an outlier it answers zeros for whatever is small beside it.

Refused by: any INCORRECT_NUMERICAL
Catalogue: B11 F1
Dtype: fp16
"""

import torch


def coarse(h, outlier):
    r = h.to(torch.float16)
    err = (r.float() - h).abs().amax(-1, keepdim=True)
    return torch.where(outlier & (h.abs() < 3 * err), torch.zeros_like(r), r)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    if not h.numel():
        return y.to(x.dtype), h.to(x.dtype)
    outlier = h.isfinite().all(-1, keepdim=True) & (
        h.abs().amax(-1, keepdim=True) > 60 * h.abs().median(-1, keepdim=True).values
    )
    return coarse(y, outlier), coarse(h, outlier)
