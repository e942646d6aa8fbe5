"""Several launch plans in the files of one launcher."""

import json

from forge.domain.plan import LaunchPlan
from forge.lab.launch_plan.launcher import launchers_files
from forge.sandbox.plans import Captured
from forge.sandbox.reply import ArtifactFile
from tests.candidates import job_for


def plan_of(code: bytes, grid: int) -> Captured:
    launch = {
        "kind": "kernel", "cubin": "plan0.cubin", "name": "rows", "grid": [grid, 1, 1], "block": [128, 1, 1],
        "shared_bytes": 0, "arguments": [],
    }  # fmt: skip
    plan = LaunchPlan.model_validate(
        {"steps": [launch], "workspaces": [], "scalars": [1e-6], "cubins": {"plan0.cubin": "a" * 64}}
    )
    return Captured(plan, (ArtifactFile("plan0.cubin", code),))


def test_each_plan_keeps_its_own_code_under_a_name_of_its_own() -> None:
    job = job_for("", language="triton")
    files, functions = launchers_files(job, [plan_of(b"one", 1), plan_of(b"two", 2)])
    assert [function.file for function in functions] == ["p00-plan.json", "p01-plan.json"]
    steps = [json.loads(files[function.file])["steps"][0] for function in functions]
    assert [files[step["cubin"]] for step in steps] == [b"one", b"two"]
    assert [step["grid"][0] for step in steps] == [1, 2]
    assert len(files) == 4
