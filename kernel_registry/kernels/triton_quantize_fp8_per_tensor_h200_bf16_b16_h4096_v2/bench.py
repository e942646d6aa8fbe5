"""The author's own timing: prints one JSON line, which Forge records as a claim."""

import json
import statistics
import time

import torch
from kernel import quantize_fp8_per_tensor
from reference import quantize_fp8_per_tensor as reference

device = "cuda" if torch.cuda.is_available() else "cpu"
rows, width = 16, 4096


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


def median_us(function, *arguments, warmup=50, rounds=200):
    for _ in range(warmup):
        function(*arguments)
    samples = []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        function(*arguments)
        wait()
        samples.append((time.perf_counter() - start) * 1e6)
    return statistics.median(samples)


torch.manual_seed(0)
operands = (torch.randn(rows, width, dtype=torch.bfloat16, device=device),)
baseline, candidate = median_us(reference, *operands), median_us(quantize_fp8_per_tensor, *operands)
print(
    json.dumps({"baseline_latency_us": baseline, "candidate_latency_us": candidate, "speedup": baseline / candidate})
)
