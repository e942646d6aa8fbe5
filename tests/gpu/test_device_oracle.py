"""The reference of an own task answers on the GPU: quickly enough for large problems, in slices, and it is named."""

import random
import time
from dataclasses import replace

import torch

from forge.domain.verdict import Accepted, Rejected
from forge.lab.reference.answers import Answers
from forge.lab.reference.binding import answered
from forge.lab.reference.describe import SubmittedReference
from forge.lab.reference.infer import Inferred, infer
from forge.lab.reference.reference_guest import AnsweringDevice
from forge.lab.verification import examine
from forge.sandbox.reply import Refused
from tests.candidates import isolation
from tests.gpu.place import gpu
from tests.lab.reference.references import POLICY as ON_A_CPU
from tests.lab.reference.references import job_against

POLICY = ON_A_CPU.model_copy(update={"memory_limit_bytes": 2**35})
PRODUCT = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.conv = nn.Conv1d(1, 1, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(self.linear(x).unsqueeze(1)).squeeze(1))


def get_inputs():
    return [torch.randn(4096, 4096)]


def get_init_inputs():
    return [4096]
"""
ON_THE_PROCESSOR = PRODUCT.replace("torch.relu(", "torch.relu(torch.zeros(1) + ").replace("4096", "64")


def inferred(source: str) -> Inferred:
    question = SubmittedReference(source=source.encode(), name="a_reference.py", dtype="fp32")
    began = time.monotonic()
    found = infer(
        question,
        policy=POLICY,
        isolation=isolation(),
        rng=random.Random(1),
        progress=lambda _: None,
        place=AnsweringDevice("cuda", gpu()),
    )
    print(f"inferred in {time.monotonic() - began:.1f} s")
    return found


def opened(found: Inferred, most_wide_bytes: int | None = None) -> Answers:
    return Answers(
        found.contract,
        found.source,
        policy=POLICY,
        isolation=isolation(),
        threads=8,
        arena_bytes=2**33,
        place=AnsweringDevice("cuda", gpu()),
        most_wide_bytes=most_wide_bytes,
    )


def test_a_large_product_is_judged_by_an_oracle_on_the_gpu() -> None:
    found = inferred(PRODUCT)
    solved = PRODUCT.replace("class Model", "class ModelNew")
    wrong = solved.replace("torch.relu(", "1.001 * torch.relu(")
    for kernel, verdict in ((solved, Accepted), (wrong, Rejected)):
        job = replace(job_against(found, kernel, "ModelNew"), policy=POLICY, device="cuda", gpu=gpu(), arch="sm_90")
        began = time.monotonic()
        with answered(job) as asked:
            examined = examine(asked, progress=lambda _: None)
        print(f"{verdict.__name__} in {time.monotonic() - began:.1f} s: {examined.gates[-1]}")
        assert isinstance(examined.verdict, verdict), (examined.verdict, examined.log[-2000:])
        if verdict is Accepted:
            (said,) = (gate.observed for gate in examined.gates if gate.name == "numerics")
            assert "oracle: the reference in fp64 on the GPU" in said


def test_slices_on_the_gpu_give_what_the_whole_gives() -> None:
    found = inferred(PRODUCT)
    with opened(found) as whole, opened(found, most_wide_bytes=2**28) as sliced:
        inputs = (*whole.generated(1), *whole.state(1))
        answers = [one.outputs(inputs, found.contract.shape, wide=True) for one in (whole, sliced)]
        first, second = (one[0] for one in answers if not isinstance(one, Refused))
        assert torch.allclose(first, second, rtol=1e-12, atol=1e-12)
        assert whole.oracle == "the reference in fp64 on the GPU"
        assert "samples at a time" in sliced.oracle


def test_a_reference_that_stays_on_the_processor_is_named_so() -> None:
    found = inferred(ON_THE_PROCESSOR)
    with opened(found) as answers:
        inputs = (*answers.generated(1), *answers.state(1))
        assert not isinstance(answers.outputs(inputs, found.contract.shape, wide=True), Refused)
        assert "on the processor" in answers.oracle
        assert "not on the GPU" in answers.oracle
