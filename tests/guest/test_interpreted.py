"""Triton's interpreter, as guests prepare it, computes with bf16 as a GPU does: products, sums and roundings."""

import json
import os
import subprocess
import sys

PROGRAM = """
import importlib.util, json, sys
import torch, triton
import triton.language as tl

spec = importlib.util.spec_from_file_location("language", sys.argv[1])
language = importlib.util.module_from_spec(spec)
spec.loader.exec_module(language)
language.prepare({"candidate_directory": sys.argv[2]})
sys.path.insert(0, sys.argv[2])
from products import product

x, w = (torch.randn(16, 16, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
worst = {}
for kind in (torch.bfloat16, torch.float16, torch.float32):
    y, expected = torch.empty(16, 16), x.to(kind).double() @ w.to(kind).double()
    product[(1,)](x.to(kind), w.to(kind), y)
    worst[str(kind)] = float((y.double() - expected).abs().max())
print(json.dumps(worst))
"""
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def product(x, w, y):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(y + at, tl.dot(tl.load(x + at), tl.load(w + at), input_precision="ieee"))
"""


def test_a_product_of_tiles_is_right_in_every_type(tmp_path):
    (tmp_path / "products.py").write_text(KERNEL)
    from forge.languages import find_language

    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(find_language("triton").guest_file), str(tmp_path)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    worst = json.loads(told.stdout)
    assert set(worst) == {"torch.bfloat16", "torch.float16", "torch.float32"}
    assert max(worst.values()) < 1e-5
