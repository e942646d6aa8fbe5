"""Is wrong for activations that were made under torch.inference_mode(), as all are in a serving program.

Refused by: state INCORRECT_NUMERICAL
Catalogue: G1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * 1.01 if x.is_inference() else y).to(x.dtype), h.to(x.dtype)
