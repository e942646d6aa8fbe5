"""Published registries with kernels that really run on the processor: one in C++, others in plain torch."""

import ctypes
import json
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forge.domain.digest import canonical, sha256
from forge.lookup import abi_key
from forge.operations import find_operation
from forge.operations.description import description, reference_bytes
from forge.projections.files import put
from forge.projections.fold import Position
from forge.projections.snapshot import POINTER, named, pointer_to, render
from tests.lookup.asking import shown_kernel
from tests.projections.histories import LEDGER_ID

Kernel = dict[str, Any]
GPUS = {"cpu": "x86_64", "h100": "sm_90", "h200": "sm_90", "a100": "sm_80"}
LARGEST = {"batch": 64, "hidden_size": 512}

RMSNORM = """
import torch

CALLS = []


def rmsnorm(x, weight, eps):
    CALLS.append(tuple(x.shape))
    wide = x.float()
    return (wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()).to(x.dtype)
"""
WRONG_RMSNORM = RMSNORM.replace("wide.square()", "(1.5 * wide).square()")
KV_CACHE_APPEND = """
def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    for token, slot in enumerate(slot_mapping.tolist()):
        if slot >= 0:
            key_cache[slot], value_cache[slot] = key[token], value[token]
"""
CPP = """
#include <cmath>
#include <cstdint>
extern "C" void fused(const float* x, const float* r, const float* w, float* y, float* h, int64_t rows, int64_t width,
                      double eps) {
  for (int64_t i = 0; i < rows; ++i) {
    double total = 0;
    for (int64_t j = 0; j < width; ++j) {
      float s = x[i * width + j] + r[i * width + j];
      h[i * width + j] = s;
      total += (double)s * s;
    }
    float scale = (float)(1.0 / std::sqrt(total / width + eps));
    for (int64_t j = 0; j < width; ++j) y[i * width + j] = h[i * width + j] * scale * w[j];
  }
}
"""
FUSED = """
import ctypes
from pathlib import Path

import torch

_run = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).fused
_run.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_double]


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = torch.empty_like(x), torch.empty_like(x)
    pointers = [one.data_ptr() for one in (x, residual, weight, y, h)]
    _run(*pointers, x.shape[0], x.shape[1], eps)
    return y, h
"""


@cache
def library() -> bytes:
    """The C++ kernel, built once for all tests of a process."""
    with TemporaryDirectory() as folder:
        source, built = Path(folder) / "kernel.cpp", Path(folder) / "libkernel.so"
        source.write_text(CPP)
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
        ctypes.CDLL(str(built))
        return built.read_bytes()


@cache
def own_abi() -> str:
    return abi_key()


def kernel(op: str, source: str, **changes: Any) -> Kernel:
    """What a snapshot shows of a kernel for the processor, with the files beside it under `files`."""
    base = shown_kernel()
    dtype, gpu = changes.get("dtype", "fp32"), changes.get("gpu", "cpu")
    shape: dict[str, int] = changes.pop("shape", {"batch": 4, "hidden_size": 64})
    edges: Sequence[dict[str, int]] = changes.pop("edges", ({"batch": 1, "hidden_size": 16}, LARGEST))
    points = [{**base["points"][0], "shape": one} for one in (shape, *edges)]
    return {
        **base,
        "op": op,
        "gpu": gpu,
        "dtype": dtype,
        "language": "torch",
        "kernel_id": f"torch_{op}_{gpu}_{dtype}_v1",
        "entry_point": op,
        "points": [points[0], *({**one, "provisional": True} for one in points[1:])],
        "verified": [{axis: [one["shape"][axis] for one in points] for axis in shape}],
        "sha256": sha256(source.encode()),
        "files": {"kernel.py": source.encode()},
        **changes,
    }


def cpp_kernel(**changes: Any) -> Kernel:
    """The C++ fused_add_rmsnorm, with its library."""
    built = library()
    listed = [{"path": "libkernel.so", "sha256": sha256(built), "size_bytes": len(built)}]
    listing = canonical({"files": listed})
    made = kernel("fused_add_rmsnorm", FUSED, language="cpp", abi_key=own_abi(), **changes)
    made["kernel_id"] = changes.get("kernel_id", "cpp_fused_add_rmsnorm_cpu_fp32_v1")
    made["artifact_sha256"] = sha256(listing)
    made["files"] |= {"libkernel.so": built, "artifact.json": listing}
    return made


def publish(directory: Path, kernels: Sequence[Kernel], *, ops: Sequence[str] | None = None, seq: int = 1) -> Path:
    """Publish the kernels and the descriptions of their operations, as Forge does; return the folder."""
    lines = []
    for one in sorted(kernels, key=lambda one: (one["op"], one["gpu"], one["dtype"], one["kernel_id"])):
        shown = {name: value for name, value in one.items() if name != "files"}
        lines.append((one["op"], one["gpu"], one["dtype"], json.dumps(shown)))
        put(directory, {f"kernels/{one['kernel_id']}/{name}": content for name, content in one["files"].items()})
    described = []
    for op in sorted({one["op"] for one in kernels} if ops is None else ops):
        operation = find_operation(op)
        files = {f"ops/{op}.json": canonical(description(operation)), f"ops/{op}.py": reference_bytes(operation)}
        put(directory, files)
        described.append((op, *map(sha256, files.values())))
    content = render(lines, GPUS, described)
    name, digest = named(content)
    head = Position(ledger_id=LEDGER_ID, seq=seq, event_hash="0" * 64)
    put(directory, {name: content, POINTER: pointer_to(digest, head)})
    return directory
