"""Guests that are ours: on a GPU, launchers of plans, and baselines, forked from one prepared process."""

from collections.abc import Mapping

from forge.errors import EnvironmentUnfit
from forge.lab.calls.load import loaded
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.languages import LANGUAGES
from forge.operations import reference_source
from forge.sandbox.launch import Bind
from forge.sandbox.session import GuestFunction
from forge.sandbox.stage import Program, Stage

KEPT_AT = "/baseline_cache"
"""Where torch.compile keeps what it made, in the guests that have such a place."""
COMPILING = {
    "TORCHINDUCTOR_CACHE_DIR": KEPT_AT,
    "TRITON_CACHE_DIR": f"{KEPT_AT}/triton",
    "TMPDIR": KEPT_AT,  # precompiled headers go to the temporary folder, whatever the cache's folder is
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
_MODULES = ("triton", "torch._inductor.compile_fx", "cuda.bindings.driver")
_ENVIRONMENT = {
    **COMPILING,
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # torch._inductor asks for a GPU as it is imported: no fork could use one
}


def trusted_program(job: Job, files: Mapping[str, bytes], *, binds: tuple[Bind, ...] = ()) -> Program:
    """What such a guest finds on its stage."""
    return Program(
        language=LANGUAGES["torch"],
        files=files,
        environment=_ENVIRONMENT,
        device="cuda",
        gpu=job.gpu,
        trusted=True,
        warm=True,
        modules=_MODULES,
        binds=binds,
    )


def require_device(job: Job) -> None:
    """Raise EnvironmentUnfit if the reference itself can't be called on the device: no candidate's fault, then."""
    operation = job.operation
    program = trusted_program(job, {"reference.py": reference_source(operation).encode()})
    stage = Stage(program, job.isolation)
    function = GuestFunction("reference.py", operation.reference.__name__)
    try:
        with loaded(job, stage, job.limits(job.policy.verify_limit_s), function, label="trusted") as kernel:
            answer = kernel if isinstance(kernel, Failed) else kernel.call([kernel.case(kernel.shape)])
    finally:
        stage.remove()
    if isinstance(answer, Failed):
        raise EnvironmentUnfit(
            f"the reference fails on this GPU: {answer.reason.message}; {answer.log[-400:]}",
            hint="forge doctor; the driver may be too old for this torch, or the device's memory taken",
        )


def prepare(job: Job) -> None:
    """Start the process that they are forked from, ahead of the first: its imports take seconds."""
    stage = Stage(trusted_program(job, {}), job.isolation)
    stage.prepare(job.threads)
    stage.remove()
