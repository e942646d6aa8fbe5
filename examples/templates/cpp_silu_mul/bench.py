"""The author's own timing: prints one JSON line, which Forge records as a claim."""

import json
import statistics
import time

import torch
from kernel import silu_mul
from reference import silu_mul as reference


def median_us(function, *arguments, warmup=50, rounds=200):
    for _ in range(warmup):
        function(*arguments)
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        function(*arguments)
        samples.append((time.perf_counter() - start) * 1e6)
    return statistics.median(samples)


torch.manual_seed(0)
operands = [torch.randn(16, 4096) for _ in range(2)]
baseline, candidate = median_us(reference, *operands), median_us(silu_mul, *operands)
print(
    json.dumps({"baseline_latency_us": baseline, "candidate_latency_us": candidate, "speedup": baseline / candidate})
)
