"""Triton's interpreter gives the same results and exceptions when it is spared repeated work, and does less of it."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json, sys
import torch
import triton.language as tl
from forge.guest import repeated_work

sys.path.insert(0, sys.argv[1])
from kernels import apart, rows, wrapped

made = []
plain = tl.block_type.__init__
tl.block_type.__init__ = lambda self, *args: (made.append(1), plain(self, *args))[1]


def told(call, *args):
    try:
        call[(3,)](*args)
    except Exception as error:
        return repr(error)
    return [one.double().tolist() for one in args if isinstance(one, torch.Tensor)]


def asked():
    drawn = torch.Generator().manual_seed(3)
    results = []
    for kind in (torch.bfloat16, torch.float16, torch.float32):
        x = torch.randn(3, 50, generator=drawn).to(kind)
        results.append(told(rows, x, torch.empty_like(x), torch.empty(3, 64), 50, 1e-6))
    for kind in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        most = torch.iinfo(kind).max
        results.append(told(wrapped, torch.tensor([most, 7, most // 2], dtype=kind), torch.zeros(48, dtype=kind)))
    results.append(told(apart, torch.zeros(16)))
    return results


asked()
made.clear()
before, blocks = asked(), len(made)
repeated_work.spare_the_interpreter()
asked()
made.clear()
print(json.dumps([repr(before), repr(asked()), blocks, len(made)]))
"""
KERNELS = """
import triton
import triton.language as tl


@triton.jit
def rows(x, y, z, width, eps, BLOCK: tl.constexpr = 64):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * width + at, mask=at < width, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(value * value, 0) / width + eps)
    tile = tl.where(at[:, None] >= at[None, :], value[None, :] * scale, -1.0)
    tl.store(y + row * width + at, value * scale, mask=at < width)
    tl.store(z + row * BLOCK + at, tl.max(tile, 1) + tl.arange(0, 64) * 3 - at % 5)


@triton.jit
def wrapped(x, y):
    row, at = tl.program_id(0), tl.arange(0, 16)
    one = tl.load(x + row)
    tl.store(y + row * 16 + at, one * one + one + at.to(one.dtype) * one)


@triton.jit
def apart(y):
    tl.store(y + tl.arange(0, 16), tl.arange(0, 16) + tl.arange(0, 8))
"""


def test_results_and_exceptions_stay_the_same_and_few_types_are_made(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    before, after, blocks, fewer = json.loads(told.stdout)
    assert before == after
    assert "incompatible dimensions" in before
    assert fewer < blocks / 3, (blocks, fewer)
