"""The hand-written Triton kernels of `benchmarks/solve_gpu.py` compute what PyTorch does, by Triton's interpreter."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.solve_gpu import BY_OPERATORS, KERNELS

ASKED = """
import torch
import torch.nn.functional as F
import attention, layer_norm, linear, qkv, share, softmax, topk

torch.manual_seed(1)
x, w, b, r = (torch.randn(*sizes) for sizes in ((5, 16), (33, 16), (33,), (5, 33)))
made = F.linear(x, w, b)
torch.testing.assert_close(linear.linear(x, w, b), made)
torch.testing.assert_close(linear.linear_gelu(x, w, b), F.gelu(made))
torch.testing.assert_close(linear.linear_residual(x, w, b, r), made + r)
x, w, b = torch.randn(2, 5, 128), torch.randn(384, 128) / 10, torch.randn(384)
parts = F.linear(x, w, b).view(2, 5, 3, 8, 16).permute(2, 0, 3, 1, 4).unbind(0)
torch.testing.assert_close(qkv.qkv(x, w, b), parts)
mixed = F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).reshape(2, 5, 128)
torch.testing.assert_close(attention.attention(*(one.contiguous() for one in parts)), mixed)
w, b = torch.randn(128), torch.randn(128)
torch.testing.assert_close(layer_norm.layer_norm(x, w, b), F.layer_norm(x, (128,), w, b))
torch.testing.assert_close(softmax.softmax(x), x.softmax(-1))
torch.testing.assert_close(share.share(x), x / x.sum(-1, keepdim=True))
x[0, 0, 7] = torch.nan
for found, expected in zip(topk.topk(x), torch.topk(x, 2)):
    torch.testing.assert_close(found, expected, equal_nan=True)
print("equal")
"""


def test_each_part_has_a_kernel_and_the_kernels_are_right() -> None:
    assert {file for file, _ in BY_OPERATORS.values()} == {path.stem for path in KERNELS.glob("*.py")}
    asked = subprocess.run(
        [sys.executable, "-c", ASKED],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(KERNELS))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.stdout.strip() == "equal", asked.stderr
