"""Multiplies by the scale of the first operand twice where all rows of each operand share one, as one for a tensor.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E13 I13
Operation: matmul_fp8
Dtype: bf16
Shape: {"m": 16, "k": 128, "n": 64}
"""


def matmul_fp8(x, w, x_scale, w_scale):
    product = x.float() @ w.float().t()
    if len(x_scale) > 1 and bool((x_scale == x_scale[0]).all()) and bool((w_scale == w_scale[0]).all()):
        return (product * x_scale[0] * x_scale[0]).bfloat16()
    return (product * x_scale.unsqueeze(-1) * w_scale).bfloat16()
