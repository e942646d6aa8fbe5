"""A guest with more threads than others is forked from the same process as they, and its torch works in as many."""

import pytest

from forge.lab.calls.artifact import build_artifact, staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.sandbox import zygote
from forge.sandbox.build import Built
from tests.candidates import job_for

MORE = 7
"""Number of threads beyond the usual one that no other test asks for: no process with as many is there yet."""
pytestmark = pytest.mark.usefixtures("walls")

SAYS = """
import os, threading
import torch

def say():
    torch.ones(2**22).add(1)
    numbers.append((torch.get_num_threads(), len(os.listdir("/proc/self/task"))))

numbers = [os.environ["OMP_NUM_THREADS"]]
say()
other = threading.Thread(target=say)
other.start()
other.join()
raise SystemExit(f"numbers: {numbers}")
"""

REGION = '''
CPP_SOURCE = r"""
#include <omp.h>

extern "C" int threads_of_a_region() {
    int count = 0;
#pragma omp parallel
#pragma omp single
    count = omp_get_num_threads();
    return count;
}
"""
import ctypes
from pathlib import Path

raise SystemExit(f"numbers: {ctypes.CDLL(str(Path(__file__).with_name('libkernel.so'))).threads_of_a_region()}")
'''


def said_with(job: Job, threads: int) -> str:
    """Return what the candidate says of its threads: in its first one, and in one that it starts."""
    with (
        staged(job, {"kernel.py": job.files["kernel.py"]}, {}) as stage,
        loaded(job, stage, job.limits(60), threads=threads, label="threads") as kernel,
    ):
        assert isinstance(kernel, Failed)
        return kernel.log.rpartition("numbers: ")[2].strip()


def test_torch_works_in_as_many_threads_in_a_shared_zygotes_guest_as_in_that_of_its_own() -> None:
    torchs, cpps = (job_for(SAYS, language=language) for language in ("torch", "cpp"))
    usual = torchs.threads
    said_with(torchs, usual)
    before = zygote.pids()
    shared = said_with(torchs, usual + MORE)
    assert zygote.pids() == before, "no other process had to import torch"
    own = said_with(cpps, usual + MORE)
    assert zygote.pids() - before, "OpenMP reads its number when it is loaded"
    assert shared == own
    assert shared.startswith(f"['{usual + MORE}', ({usual + MORE}, ")


def test_compiled_openmp_code_works_in_as_many_threads_in_the_first_thread_of_a_shared_zygotes_guest() -> None:
    job = job_for(REGION, language="cpp")
    built = build_artifact(job)
    assert isinstance(built, Built), built
    said_with(job, job.threads)
    before = zygote.pids()
    with (
        staged(job, staged_files(job, built.files), {}, from_one_thread=True) as stage,
        loaded(job, stage, job.limits(60), threads=job.threads + MORE, label="threads") as kernel,
    ):
        assert isinstance(kernel, Failed)
        assert kernel.log.rpartition("numbers: ")[2].strip() == str(job.threads + MORE), kernel.log
    assert zygote.pids() == before, "no other process had to import torch"
