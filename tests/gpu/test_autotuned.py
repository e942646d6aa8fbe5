"""Autotuned kernels on the GPU: a verdict over all configurations, and the plan of the one that their tuner chose.

With `-s` the seconds of each verdict are printed; the goal for eight configurations is 60 on an H200 alone.
"""

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from forge.domain.tensors import parse_dtype
from forge.domain.verdict import Accepted, Rejected
from forge.lab.calls.configurations import Configuration
from forge.lab.launch_plan.launcher import kept_plan
from forge.lab.verification import examine
from forge.lookup.tuned import CONFIGURATION_FILE
from tests.candidates import job_for
from tests.gpu.place import gpu

CANDIDATES = sorted((Path(__file__).parent / "autotuned").glob("*.py"))
WARP = 32
"""Threads of a warp."""


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_an_autotuned_kernel_ends_as_it_says(path: Path) -> None:
    text = path.read_text()
    said = dict(re.findall(r"^(Refused by|Operation|Dtype|Shape|Plan): (.+)$", text.split('"""')[1], re.MULTILINE))
    job = job_for(
        text,
        language="triton",
        operation=said["Operation"],
        dtype=parse_dtype(said["Dtype"]),
        shape=json.loads(said["Shape"]),
        memory_bytes=2**34,
    )
    began_s = time.monotonic()
    examined = examine(replace(job, interpreted=False, device="cuda", gpu=gpu()), progress=lambda _: None)
    print(f"{path.stem}: {time.monotonic() - began_s:.1f} s, {examined.verdict.verdict}")
    if "Refused by" in said:
        gate, _, codes = said["Refused by"].partition(" ")
        assert isinstance(examined.verdict, Rejected), examined.gates
        assert gate in (examined.gates[-1].name, "any"), examined.verdict
        assert examined.verdict.reason.code in codes.split(" or "), examined.verdict
        return
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
    (file,) = (file for file in examined.artifact if file.name == CONFIGURATION_FILE)
    (kept,) = (Configuration.model_validate(one) for one in json.loads(file.content))
    captured = kept_plan(examined.artifact)
    (plan,) = (gate for gate in examined.gates if gate.name == "plan")
    print(f"{path.stem}: plan: {plan.observed}")
    if "Plan" in said:
        assert plan.observed.startswith(said["Plan"].partition(": ")[0]), plan
        assert captured is None
        return
    assert captured is not None, plan
    tuned = next(kernel for kernel in captured.plan.kernels if kernel.name == kept.kernel)
    assert kept.num_warps is not None
    assert tuned.block[0] == WARP * kept.num_warps
