"""Guests on a GPU that are ours: launchers of plans, and baselines. They are forked from one prepared process."""

from collections.abc import Mapping

from forge.lab.job import Job
from forge.languages import LANGUAGES
from forge.sandbox.launch import Bind
from forge.sandbox.stage import Program, Stage

CACHE = "/baseline_cache"
"""Where torch.compile keeps what it made, in the guests that have such a place."""
_MODULES = ("triton", "torch._dynamo", "cuda.bindings.driver")
_ENVIRONMENT = {
    "TORCHINDUCTOR_CACHE_DIR": CACHE,
    "TRITON_CACHE_DIR": f"{CACHE}/triton",
    "TMPDIR": CACHE,
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


def trusted_program(job: Job, files: Mapping[str, bytes], *, writable: tuple[Bind, ...] = ()) -> Program:
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
        writable=writable,
    )


def prepare(job: Job) -> None:
    """Start the process that they are forked from, ahead of the first: its imports take seconds."""
    stage = Stage(trusted_program(job, {}), job.isolation)
    stage.prepare(job.threads)
    stage.remove()
