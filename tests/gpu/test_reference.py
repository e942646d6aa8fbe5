"""A reference file of one's own runs on the processor; its candidates run on the GPU, and are judged there."""

from dataclasses import replace
from functools import cache

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.lab.job import Job
from forge.lab.launch_plan.launcher import kept_plan
from forge.lab.reference.binding import answered
from forge.lab.reference.infer import Inferred
from forge.lab.verification import Examination, examine
from forge.languages import find_language
from tests.gpu.place import gpu
from tests.lab.reference.references import POLICY as ON_A_CPU
from tests.lab.reference.references import ask, job_against

POLICY = ON_A_CPU.model_copy(update={"memory_limit_bytes": 2**34})

MODEL = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(features))
        self.shift = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return torch.softmax(x * torch.sigmoid(x * self.scale + self.shift), dim=1)


def get_inputs():
    return [torch.randn(512, 256)]


def get_init_inputs():
    return [256]
"""
AS_SOLVED = MODEL.replace("class Model", "class ModelNew")
DOUBLED = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("order", torch.arange(256).flip(0))

    def forward(self, x):
        LINE
        return x[:, self.order].t() * 2


def get_inputs():
    return [torch.randn(512, 256)]


def get_init_inputs():
    return []
"""
"""Of an operand whose values must stay where they are, and with a result in other strides."""
TRITON = """
import torch
import triton
import triton.language as tl


@triton.jit
def _doubled(x, order, y, rows, width, BLOCK: tl.constexpr):
    column, row = tl.program_id(0), tl.arange(0, BLOCK)
    source = tl.load(order + column)
    h = tl.load(x + row * width + source, mask=row < rows)
    tl.store(y + AT, h * 2, mask=row < rows)


def doubled(x, order):
    rows, width = x.shape
    y = torch.empty(SIZES, dtype=x.dtype, device=x.device)
    _doubled[(width,)](x, order, y, rows, width, BLOCK=triton.next_power_of_2(rows))
    return RETURNED
"""
IN_ROWS = TRITON.replace("SIZES", "(width, rows)").replace("AT", "column * rows + row").replace("RETURNED", "y")
IN_STRIDES = (
    TRITON.replace("SIZES", "(rows, width)").replace("AT", "row * width + column").replace("RETURNED", "y.t()")
)


@cache
def frozen(source: str = MODEL) -> Inferred:
    return ask(source)


def examined(kernel: str) -> Examination:
    job = replace(job_against(frozen(), kernel, "ModelNew"), device="cuda", gpu=gpu(), policy=POLICY)
    with answered(job) as asked:
        return examine(asked, progress=lambda _: None)


def in_triton(kernel: str, source: str) -> Job:
    """Judged on the GPU, and timed there by its launches where it has a plan."""
    job = replace(job_against(frozen(source), kernel, "doubled"), language=find_language("triton"), policy=POLICY)
    return replace(job, device="cuda", gpu=gpu(), arch="sm_90")


def plan_said(found: Examination) -> str:
    assert isinstance(found.verdict, Accepted), (found.verdict, found.log)
    return {gate.name: gate.observed for gate in found.gates}["plan"]


def test_a_right_candidate_is_accepted() -> None:
    found = examined(AS_SOLVED)
    assert isinstance(found.verdict, Accepted), (found.verdict, found.log)


@pytest.mark.parametrize(("right", "wrong"), [(" + self.shift", ""), ("x * torch", "x.half().float() * torch")])
def test_a_wrong_candidate_is_rejected(right: str, wrong: str) -> None:
    found = examined(AS_SOLVED.replace(right, wrong))
    assert isinstance(found.verdict, Rejected), found.gates
    assert found.verdict.reason.code == "INCORRECT_NUMERICAL"


def test_a_kernel_in_triton_is_accepted_with_its_plan() -> None:
    with answered(in_triton(IN_ROWS, DOUBLED.replace("LINE", "pass"))) as job:
        found = examine(job, progress=lambda _: None)
    assert plan_said(found).startswith("1 kernel; ")
    assert kept_plan(found.artifact) is not None


def test_a_read_past_an_operand_is_seen_by_the_memory_tools() -> None:
    beyond = IN_ROWS.replace("mask=row < rows)\n    tl", "mask=row <= rows, other=0.0)\n    tl")
    wider = beyond.replace("BLOCK=triton", "BLOCK=2 * triton")
    assert wider != beyond != IN_ROWS
    with answered(in_triton(wider, DOUBLED.replace("LINE", "pass"))) as job:
        found = examine(job, progress=lambda _: None)
    assert isinstance(found.verdict, Rejected), found.gates
    assert (found.gates[-1].name, found.verdict.reason.code) == ("sanitizer", "OUT_OF_BOUNDS")


@pytest.mark.parametrize(
    ("kernel", "line", "why"),
    [(IN_ROWS, "float(x[0, 0])", "no launch plan (reference): "), (IN_STRIDES, "pass", "no launch plan (strides): ")],
)
def test_what_cant_be_replayed_has_no_plan(kernel: str, line: str, why: str) -> None:
    with answered(in_triton(kernel, DOUBLED.replace("LINE", line))) as job:
        found = examine(job, progress=lambda _: None)
    assert plan_said(found).startswith(why)
    assert kept_plan(found.artifact) is None
