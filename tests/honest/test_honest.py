"""Every honest way to compute the same thing is accepted: a refusal here is a fault of the judge."""

import json
import os
import re
from pathlib import Path

import pytest

from forge.domain.tensors import parse_dtype
from forge.domain.verdict import Accepted
from forge.lab.gates import threads
from forge.lab.job import Job
from forge.lab.verification import ORDER, OWN_TESTS_FILE, Examination, examine
from tests.candidates import EXAMPLES, SHAPE, job_for
from tests.shortened import OF_SHAPES

HERE = Path(__file__).parent
CANDIDATES = sorted((HERE / "candidates").glob("*.py"))
BESIDE_A_LOAD = ("row_by_row", "triton_heuristics")
"""Candidates that `test_under_load` asks beside a load, and that aren't asked without one for that reason."""
pytestmark = pytest.mark.usefixtures("walls")


def accepted(job: Job, *, without: tuple[str, ...] = ()) -> Examination:
    examined = examine(job, progress=lambda _: None)
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
    unbuilt = set() if job.language.builds else {"build", "sanitizer"}
    unasked = {"load", "plan", *without} | unbuilt | (set() if threads.applies(job) else {"threads"})
    assert [gate.name for gate in examined.gates] == [name for name in ORDER if name not in unasked]
    assert all(gate.verdict != "failed" and gate.observed and gate.threshold for gate in examined.gates)
    left_out = {gate.name for gate in examined.gates if gate.verdict == "not asked"}
    claims = set() if OWN_TESTS_FILE in job.files else {"own_tests"}
    endless = {"leaks", "endurance"} if job.interpreted else {"endurance"} if job.operation.updates else set()
    tuned = any(b"triton.autotune" in content for content in job.files.values())
    undeclared = {name for name, declared in (("configurations", tuned), ("domain", job.domain)) if not declared}
    assert left_out == endless | undeclared | claims
    assert len(set(examined.seeds)) == len(examined.seeds) > 30
    assert max(errors.bound_used for errors in examined.workloads) <= 1
    return examined


@pytest.mark.parametrize(
    "path", [path for path in CANDIDATES if path.stem not in BESIDE_A_LOAD], ids=lambda path: path.stem
)
def test_an_honest_kernel_is_accepted(path: Path, request: pytest.FixtureRequest) -> None:
    """A third of the candidates, chosen by their texts, meets the gates of many shapes; in a long run all do."""
    job = described_job(path)
    if job.seed % 3 == 0 or os.environ.get("FORGE_TEST_LONG") == "1":
        accepted(job)
    else:
        request.getfixturevalue("no_shapes")
        accepted(job, without=OF_SHAPES)


def described_job(path: Path) -> Job:
    """Return the examination of a candidate, as its first lines describe it."""
    text = path.read_text()
    said = dict(re.findall(r"^(Operation|Language|Dtype|Shape): (.+)$", text.split('"""')[1], re.MULTILINE))
    return job_for(
        text,
        language=said.get("Language", "torch"),
        operation=said.get("Operation", "fused_add_rmsnorm"),
        dtype=parse_dtype(said.get("Dtype", "fp32")),
        shape=json.loads(said["Shape"]) if "Shape" in said else SHAPE,
        limit_s=120,
    )


def test_the_shipped_example_is_accepted_with_its_own_tests() -> None:
    folder = EXAMPLES / "honest_cpp"
    own_tests = (folder / "test_correctness.py").read_bytes()
    examined = accepted(job_for((folder / "kernel.py").read_text(), language="cpp", own_tests=own_tests))
    assert [file.name for file in examined.artifact] == ["libkernel.so"]


@pytest.mark.slow(first=True)
def test_an_unmodified_torch_extension_is_built_loaded_and_accepted() -> None:
    kernel = (HERE / "extension" / "kernel.py").read_text()
    examined = accepted(job_for(kernel, language="cpp", cpp_source=False, limit_s=240, memory_bytes=4 * 2**30))
    assert [file.name for file in examined.artifact] == ["fused_add_rmsnorm_extension.so"]
