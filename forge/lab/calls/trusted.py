"""Starts trusted guests on a GPU: launchers of plans, and baselines, forked from one prepared process."""

from collections.abc import Mapping

from forge.errors import EnvironmentUnfit
from forge.lab.calls.load import loaded
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.languages import LANGUAGES
from forge.operations import reference_source
from forge.sandbox.launch import Bind
from forge.sandbox.stage import Program, Stage

CACHE_FOLDER = "/baseline_cache"
"""Folder for torch.compile's results, in the guests that have one."""
COMPILER_ENVIRONMENT = {
    "TORCHINDUCTOR_CACHE_DIR": CACHE_FOLDER,
    "TRITON_CACHE_DIR": f"{CACHE_FOLDER}/triton",
    "TMPDIR": CACHE_FOLDER,
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
}
"""Environment variables that make torch.compile keep its results in that folder, and compile nothing else.

A process compiles one or two operations, and compiled headers only pay from the fourth on. By default Inductor also
compiles and loads a program for each vector instruction set of the processor. So it learns if the compiler knows the
set. Any compiler that takes torch's headers knows them, and Inductor chooses the same set without asking.
"""
COMPILER_MODULES = ("triton", "torch._inductor.compile_fx", "cuda.bindings.driver")
"""Modules that guests on a GPU import which compile with torch, or time by graph replay."""
GPU_COMPILER_ENVIRONMENT = {
    **COMPILER_ENVIRONMENT,
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # otherwise importing torch._inductor makes GPUs unusable in forks
    "TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER": "0",
}
"""Environment variables of guests on a GPU that compile with torch.

They switch Inductor's static launcher off. With it each process tuned a cached kernel anew in two cases. Either the
kernel had one starting configuration, or coordinate descent ended at a starting one. A guest then took seconds
more, and measured up to 30 % faster or slower than the next one.
"""


def trusted_program(job: Job, files: Mapping[str, bytes], *, binds: tuple[Bind, ...] = ()) -> Program:
    """Return the program of a trusted guest with the given files."""
    return Program(
        language=LANGUAGES["torch"],
        files=files,
        environment=GPU_COMPILER_ENVIRONMENT,
        device="cuda",
        gpu=job.gpu,
        trusted=True,
        warm=True,
        modules=COMPILER_MODULES,
        binds=binds,
    )


def require_device(job: Job) -> None:
    """Raise EnvironmentUnfit if the reference can't be called on the device, which is no candidate's fault.

    A reference file isn't asked: it may run on a processor alone.
    """
    if job.device == "cpu" or not job.definition.runs_here:
        return
    program = trusted_program(job, {"reference.py": reference_source(job.operation).encode()})
    stage = Stage(program, job.isolation)
    limits = job.limits(job.policy.verify_limit_s)
    try:
        with loaded(job, stage, limits, job.definition.reference(), label="trusted") as kernel:
            answer = kernel if isinstance(kernel, Failed) else kernel.call([kernel.case(kernel.shape)])
    finally:
        stage.remove()
    if isinstance(answer, Failed):
        raise EnvironmentUnfit(
            f"the reference fails on this GPU: {answer.reason.message}; {answer.log[-400:]}; expected a call that "
            "returns: the driver may be too old for this torch, or other processes may hold the device's memory",
            hint="forge doctor",
        )


def prepare(job: Job) -> None:
    """Start the process that trusted guests are forked from, before the first is needed.

    Its imports take seconds.
    """
    stage = Stage(trusted_program(job, {}), job.isolation)
    stage.prepare(job.threads)
    stage.remove()
