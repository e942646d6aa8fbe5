"""Triton's interpreter, as guests prepare it, does what Triton's compiler does, in six places where it hadn't."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

PROGRAM = """
import importlib.util, json, sys
import torch

spec = importlib.util.spec_from_file_location("forge.guest.language", sys.argv[1])
language = importlib.util.module_from_spec(spec)
spec.loader.exec_module(language)
language.prepare({"candidate_directory": sys.argv[2]})
sys.path.insert(0, sys.argv[2])
import kernels

print(json.dumps(kernels.answers(torch.load(sys.argv[3]))))
"""
KERNELS = """
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda.libdevice import erf


@triton.jit
def _of_the_device(x, y, whole, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    h = tl.load(x + at)
    tl.store(y + at, libdevice.tanh(h))
    tl.store(y + BLOCK + at, tl.extra.cuda.libdevice.fast_expf(-tl.abs(h)))
    tl.store(y + 2 * BLOCK + at, erf(h))
    tl.store(y + 3 * BLOCK + at, libdevice.fmod(h, 3.0))
    tl.store(y + 4 * BLOCK + at, tl.where(libdevice.isnan(h / h), 1.0, 0.0))
    tl.store(whole + at, libdevice.float2int_rn(h))


@triton.jit
def _unknown(x):
    tl.store(x, libdevice.j0(tl.load(x)))


@triton.jit
def _rounded(x, small, wide, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(small + at, tl.load(x + at).to(tl.float8e4nv))
    tl.store(wide + at, tl.load(x + at).to(tl.float8e5))


@triton.jit
def _at(x, row, column):
    return tl.load(x + row.to(tl.int64) * 4 + column)


@triton.jit
def _counted(x, y, ROWS, COLUMNS: tl.constexpr):
    columns = tl.arange(0, COLUMNS)
    for row in range(0, ROWS):
        tl.store(y + row.to(tl.int64) * COLUMNS + columns, _at(x, row, columns))
    for row in tl.range(0, ROWS - 1, num_stages=2):
        tl.store(y + (row + 1).to(tl.int64) * COLUMNS, _at(x, row + 1, 0) + 1.0)


@triton.jit
def _means(mean, squares, count, other_mean, other_squares, other_count):
    both, apart = count + other_count, other_mean - mean
    share = other_count / tl.where(both > 0, both, 1.0)
    return mean + apart * share, squares + other_squares + apart * apart * count * share, both


@triton.jit
def _larger(value, place, other, other_place):
    if value > other:
        return value, place
    return other, other_place


@triton.jit
def _first(one, other):
    return one


@triton.jit
def _plus(one, other):
    return one + other


@triton.jit
def _combined(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    h = tl.load(x + at)
    mean, squares, count = tl.reduce((h, tl.zeros_like(h), tl.full(h.shape, 1.0, tl.float32)), 1, _means)
    tl.store(y + tl.arange(0, ROWS), mean)
    tl.store(y + ROWS + tl.arange(0, ROWS), squares / count)
    tl.store(y + 2 * ROWS + tl.arange(0, ROWS), tl.reduce(h, 1, _first))
    tl.store(y + 3 * ROWS + at, tl.associative_scan(h, 1, _plus))
    value, place = tl.reduce((tl.ravel(h), tl.arange(0, ROWS * COLUMNS)), 0, _larger)
    tl.store(y + 3 * ROWS + ROWS * COLUMNS, value)
    tl.store(y + 3 * ROWS + ROWS * COLUMNS + 1, place.to(tl.float32))
    tl.store(y + 3 * ROWS + ROWS * COLUMNS + 2, tl.argmax(tl.ravel(h) * float("nan"), 0).to(tl.float32))


def answers(x):
    told = {}
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        small, wide = torch.empty(64, dtype=torch.float8_e4m3fn), torch.empty(64, dtype=torch.float8_e5m2)
        _rounded[(1,)](x.to(kind), small, wide, BLOCK=64)
        told[str(kind)] = [small.view(torch.uint8).tolist(), wide.view(torch.uint8).tolist()]
    copied, combined = torch.zeros(16, 4), torch.zeros(3 * 4 + 64 + 3)
    _counted[(1,)](x, copied, 16, COLUMNS=4)
    _combined[(1,)](x.clamp(-9, 9).nan_to_num(), combined, ROWS=4, COLUMNS=16)
    finite, whole = x.clamp(-9, 9).nan_to_num(), torch.zeros(64, dtype=torch.int32)
    device = torch.zeros(5, 64)
    _of_the_device[(1,)](finite, device, whole, BLOCK=64)
    told |= {"device": device.tolist(), "whole": whole.tolist(), "unknown": ""}
    try:
        _unknown[(1,)](finite)
    except Exception as error:
        told["unknown"] = str(error)
    for options in ({"num_warps": 3}, {"num_wraps": 4}, {"num_warps": 64}, {"num_warps": 8, "maxnreg": 128}):
        try:
            _rounded[(1,)](x, small, wide, BLOCK=64, **options)
            told[str(options)] = "launched"
        except Exception as error:
            told[str(options)] = str(error)
    return {**told, "counted": copied.nan_to_num().tolist(), "combined": combined.tolist()}
"""
CARRIED = (7.9, -7.9, 449.0, 463.9, 470.0, 1e9, -1e9, float("inf"), 0.0, -0.0, 1e-9, 0.0146, 0.002, float("nan"))
"""Numbers whose significand carries into the exponent in fp8, that are too large for it or below its normal ones."""


def values() -> torch.Tensor:
    spread = torch.randn(64 - len(CARRIED), generator=torch.Generator().manual_seed(1)) * 30
    return torch.cat((torch.tensor(CARRIED), spread))


@cache
def answers(folder: Path) -> dict[str, Any]:
    from forge.languages import find_language

    (folder / "kernels.py").write_text(KERNELS)
    torch.save(values(), folder / "x.pt")
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(find_language("triton").guest_file), str(folder), str(folder / "x.pt")],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return answers(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_numbers_of_eight_bits_are_rounded_to_nearest_and_end_at_the_largest(kind, told) -> None:
    for found, narrow, largest in zip(
        told[str(kind)], (torch.float8_e4m3fn, torch.float8_e5m2), (448.0, 57344.0), strict=True
    ):
        expected = values().to(kind).float().clamp(-largest, largest).to(narrow)
        assert found == expected.view(torch.uint8).tolist()


def test_a_loops_counter_is_a_number_of_tritons(told) -> None:
    expected = values().reshape(16, 4).nan_to_num()
    expected[1:, 0] += 1.0
    assert torch.equal(torch.tensor(told["counted"]), expected)


def test_a_kernels_own_function_reduces_and_scans_in_order(told) -> None:
    x, found = values().clamp(-9, 9).nan_to_num().reshape(4, 16), torch.tensor(told["combined"])
    mean, spread, first = found[:12].reshape(3, 4)
    assert torch.allclose(mean, x.mean(1), atol=1e-5)
    assert torch.allclose(spread, x.var(1, unbiased=False), rtol=1e-5)
    assert torch.equal(first, x[:, 0])
    assert torch.allclose(found[12:76].reshape(4, 16), x.cumsum(1), atol=1e-4)
    assert found[76] == x.max()
    assert x.flatten()[int(found[77])] == x.max()
    assert 0 <= int(found[78]) < 64


def test_functions_of_the_devices_library_are_computed_by_each_of_their_names(told) -> None:
    x, found = values().clamp(-9, 9).nan_to_num(), torch.tensor(told["device"])
    expected = torch.stack((x.tanh(), (-x.abs()).exp(), x.erf(), x.fmod(3.0), (x == 0).float()))
    assert torch.allclose(found, expected, rtol=2e-6, atol=1e-7)
    assert told["whole"] == x.round().int().tolist()
    assert "can't be computed without a GPU" in told["unknown"]


def test_launch_options_are_those_that_the_compiler_takes(told) -> None:
    assert "power of 2" in told["{'num_warps': 3}"]
    assert "num_wraps was specified but unrecognised" in told["{'num_wraps': 4}"]
    assert "expected at most 32" in told["{'num_warps': 64}"]
    assert told["{'num_warps': 8, 'maxnreg': 128}"] == "launched"
