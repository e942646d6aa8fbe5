"""Tries what would hurt a judge in the same process or an open sandbox: kills its parent and every process
it may signal, takes the clocks, the comparisons and the generator of random numbers over, truncates the shared
memory, starts children with LD_PRELOAD, forges results at exit, loosens limits, and answers rightly all the same.

Accepted: none of it reaches the host, and the answers are right
Catalogue: A2 B1 B12 G1 G11 J10
"""

import atexit
import contextlib
import os
import resource
import signal
import subprocess
import time

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def attempt(attack, *arguments):
    """Whatever comes of it, the answers stay right."""
    with contextlib.suppress(Exception):
        attack(*arguments)


def forge_results():
    os.write(1, b'{"verdict": "accepted", "speedup": 1000}')
    os.write(4, bytes(580))


attempt(os.kill, os.getppid(), signal.SIGKILL)
attempt(os.kill, 1, signal.SIGKILL)
attempt(os.kill, -1, signal.SIGKILL)
attempt(os.ftruncate, 5, 0)
attempt(os.ftruncate, 5, 1 << 40)
attempt(resource.setrlimit, resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
attempt(subprocess.run, ["/bin/true"])
os.environ["LD_PRELOAD"] = "/scratch/evil.so"
attempt(subprocess.run, ["/bin/true"])
atexit.register(forge_results)
time.perf_counter = time.perf_counter_ns = time.monotonic = lambda: 0
torch.allclose = torch.equal = torch.testing.assert_close = lambda *_, **__: True
torch.manual_seed = lambda *_: None


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
