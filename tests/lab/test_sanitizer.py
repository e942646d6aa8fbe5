"""What the memory tools say is read right: on reports recorded from an H200, and on AddressSanitizer's own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forge.domain.policy import Policy
from forge.lab.finding import Failed, Passed
from forge.lab.sanitizer import address, applies, compute, examine
from forge.operations.own import own_operation
from tests.candidates import EXAMPLES, job_for
from tests.evil.described import described
from tests.lab.reference.references import square_contract

GPU = Path(__file__).parents[1] / "gpu"
RECORDED = json.loads((GPU / "recorded" / "h200.json").read_text())
BY_NAME = {one["candidate"]: one for one in RECORDED["results"]}
MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at _fused_add_rmsnorm+0x130 in kernel.py:23
=========     by thread (9,0,0) in block (2,0,0)
=========     Access to 0x7f577a800624 is out of bounds
"""


CANDIDATES = {path.stem: path for path in (GPU / "candidates").glob("*.py")}


def test_every_gpu_candidate_was_recorded() -> None:
    assert BY_NAME.keys() - {"honest:fp32", "honest:fp16", "honest:bf16"} == CANDIDATES.keys()


@pytest.mark.parametrize("name", sorted(CANDIDATES))
def test_what_a_gpu_candidate_promises_is_what_was_seen_on_the_device(name: str) -> None:
    said, seen = described(CANDIDATES[name]), BY_NAME[name]
    assert seen["verdict"]["reason"]["code"] in said.codes
    assert said.gate in (seen["gates"][-1]["name"], "any")
    assert all(gate["verdict"] == "passed" for gate in seen["gates"][:-1])


@pytest.mark.parametrize("dtype", ["honest:fp32", "honest:fp16", "honest:bf16"])
def test_an_honest_kernel_went_through_every_tool_on_the_device(dtype: str) -> None:
    seen = BY_NAME[dtype]
    assert seen["verdict"] == {"verdict": "accepted"}
    observed = {gate["name"]: gate["observed"] for gate in seen["gates"]}
    assert observed["sanitizer"] == f"{', '.join(compute.TOOLS)} silent"
    assert "past 2^31 bytes, right around the boundary" in observed["sizes"]


def test_a_lack_of_the_devices_memory_is_no_access_outside() -> None:
    lacking = '========= Program hit cudaErrorMemoryAllocation (error 2) due to "out of memory" on a call.\n'
    assert compute.refusal("memcheck", lacking).reason.code == "OUT_OF_MEMORY"
    assert compute.refusal("memcheck", MEMCHECK + lacking).reason.code == "OUT_OF_BOUNDS"
    assert compute.refusal("racecheck", "no report").reason.code == "NON_DETERMINISTIC"


def test_the_first_report_is_what_is_told() -> None:
    assert compute.report(MEMCHECK) == "Invalid __global__ read of size 4 bytes"
    assert compute.report(BY_NAME["adds_to_what_was_there"]["log_tail"]) == (
        "Uninitialized __global__ memory read of size 4 bytes"
    )
    assert compute.report("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") is None
    assert compute.report("the candidate says: Invalid read") is None


def test_it_applies_to_what_is_compiled_and_only_if_the_policy_asks() -> None:
    kernel = (EXAMPLES / "honest_cpp" / "kernel.py").read_text()
    assert applies(job_for(kernel, language="cpp"))
    assert not applies(job_for("", language="torch"))
    assert not applies(job_for("", language="triton"))
    assert not applies(replace(job_for(kernel, language="cpp"), policy=Policy(sanitizer=False)))


@pytest.mark.parametrize(("language", "watched"), [("triton", True), ("cuda", True), ("torch", False)])
def test_beside_a_reference_file_all_but_pytorch_is_watched_on_a_gpu(language: str, watched: bool) -> None:
    own = replace(job_for("", language=language), operation=own_operation(square_contract(4), b""), device="cuda")
    assert applies(own) is watched
    assert applies(replace(own, operation=job_for("", language=language).operation))


@pytest.mark.usefixtures("walls")
def test_an_honest_build_is_silent_and_a_stray_one_is_named() -> None:
    honest = (EXAMPLES / "honest_cpp" / "kernel.py").read_text()
    assert isinstance(examine(job_for(honest, language="cpp")), Passed)
    stray = Path(__file__).parents[1] / "evil" / "candidates" / "overruns_its_own_output.py"
    failed = address.examine(job_for(stray.read_text(), language="cpp"))
    assert isinstance(failed, Failed)
    assert failed.observed == "heap-buffer-overflow"
    assert address.REPORT in failed.log
