"""A kernel that is compiled at its calls may take longer for all gates than others, and no longer for one answer."""

from dataclasses import replace

import pytest

from forge.domain.verdict import Rejected
from forge.lab.verification import examine
from tests.candidates import job_for

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < n, other=0.0)
    u = tl.load(up + at, mask=at < n, other=0.0)
    done = 0
    while done == 0:
        tl.store(out + at, g * tl.sigmoid(g) * u, mask=at < n)


def silu_mul(gate, up):
    out = torch.empty_like(gate)
    _kernel[(triton.cdiv(out.numel(), 256),)](gate, up, out, out.numel(), BLOCK=256)
    return out
"""


def test_gates_together_may_take_longer_if_calls_compile_and_one_answer_may_not() -> None:
    triton = job_for(KERNEL, language="triton", operation="silu_mul", limit_s=30)
    native = job_for(KERNEL, language="torch", operation="silu_mul", limit_s=30)
    for job in (triton, replace(triton, interpreted=False), replace(native, device="cuda")):
        assert (job.gate_limits.thread_cpu_s, job.gate_limits.reply_cpu_s) == (120, 30)
    assert (native.gate_limits.thread_cpu_s, native.gate_limits.reply_cpu_s) == (30, None)
    assert triton.gate_limits.wall_s == 4 * native.gate_limits.wall_s


@pytest.mark.usefixtures("walls")
def test_a_kernel_that_hangs_in_an_interpreter_ends_at_the_usual_limit() -> None:
    job = job_for(KERNEL, language="triton", operation="silu_mul", limit_s=5)
    examined = examine(job, progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected)
    assert examined.verdict.reason.code == "TIMEOUT"
    assert "used up 5 s of processor time and gave no answer" in examined.verdict.reason.message
