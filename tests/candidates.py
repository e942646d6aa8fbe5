"""Candidates made of one kernel and the shipped example's other files, and the host they are judged on."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from forge.domain.candidate import Metadata
from forge.domain.evidence import Isolation
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.inputs.seeded import SEED_BITS
from forge.lab.job import Job
from forge.lab.judge_processes import SERVER
from forge.lab.verification import OWN_TESTS_FILE
from forge.languages import find_language
from forge.operations import find_operation
from forge.sandbox import zygote
from forge.sandbox.capabilities import probe

EXAMPLES = Path(__file__).parents[1] / "examples"
SHAPE = {"batch": 4, "hidden_size": 256}


@cache
def isolation() -> Isolation:
    found = probe()
    return Isolation(level=found.level, parts=found.parts, missing=found.missing)


def job_for(
    kernel: str,
    *,
    language: str,
    operation: str = "fused_add_rmsnorm",
    limit_s: float = 120.0,
    build_limit_s: float = 240.0,
    dtype: DType = "fp32",
    shape: Mapping[str, int] = SHAPE,
    layouts: Sequence[str] = (),
    domain: Mapping[str, object] | None = None,
    cpp_source: bool = True,
    own_tests: bytes | None = None,
    memory_bytes: int = 2**30,
    forbidding: bool = False,
) -> Job:
    """Judge `kernel` with the other files of examples/honest_cpp, and with the author's tests if some are given."""
    described: dict[str, object] = {"name": "a candidate", "op": operation, "language": language}
    if layouts:
        described["layouts"] = list(layouts)
    if domain is not None:
        described["domain"] = dict(domain)
    if language == "cpp" and cpp_source:
        described["cpp"] = {"source": "CPP_SOURCE", "flags": ["-O3", "-march=native", "-fopenmp", "-std=c++17"]}
    if language == "cuda" and cpp_source:
        described["cuda"] = {"source": "CUDA_SOURCE"}
    files = {name: (EXAMPLES / "honest_cpp" / name).read_bytes() for name in ("reference.py", "bench.py")}
    files |= {"kernel.py": kernel.encode(), "metadata.json": json.dumps(described).encode()}
    if own_tests is not None:
        files[OWN_TESTS_FILE] = own_tests
    asked = find_operation(operation)
    return Job(
        operation=asked,
        language=find_language(language),
        shape=shape,
        held_out=({**shape, asked.row_axis: 6, asked.reduced_axis: 200},),
        dtype=dtype,
        policy=Policy(build_limit_s=build_limit_s, verify_limit_s=limit_s, memory_limit_bytes=memory_bytes),
        isolation=isolation(),
        files=files,
        metadata=Metadata.model_validate(described),
        entry_point=operation,
        interpreted=language == "triton",
        arch="sm_90" if language in ("cuda", "triton") else "host",
        forbidding=forbidding,
        seed=seed_of(kernel),
    )


def seed_of(kernel: str) -> int:
    """Return the seed of a candidate's questions: its own text's, so that a test asks the same each time.

    Set FORGE_TEST_SEED to any word to ask other questions.
    """
    drawn = hashlib.sha256(f"{os.environ.get('FORGE_TEST_SEED', '')} {kernel}".encode()).digest()
    return int.from_bytes(drawn, "big") >> (8 * len(drawn) - SEED_BITS)


def left_over_children() -> set[int]:
    """Every process that descends from this one, but those that wait for the next guest, and those whose ends such a
    process is about to be told of."""
    waiting, parents = zygote.pids() | {SERVER.pid}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{name}/stat").read_bytes()
        except OSError:
            continue
        state, parent = stat.rpartition(b")")[2].split()[:2]
        if state != b"Z" or int(parent) not in waiting:
            parents[int(name)] = int(parent)
    family, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family, grown = family | more, bool(more)
    return family - {os.getpid()} - waiting
