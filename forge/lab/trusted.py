"""Guests that are ours: on a GPU, launchers of plans, and baselines, forked from one prepared process."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from forge.errors import EnvironmentUnfit
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.subject import loaded
from forge.languages import LANGUAGES
from forge.operations import reference_source
from forge.sandbox.launch import Bind
from forge.sandbox.session import GuestFunction
from forge.sandbox.stage import Program, Stage

CACHE = "/baseline_cache"
"""Where torch.compile keeps what it made, in the guests that have such a place."""
COMPILED: set[tuple[object, ...]] = set()
"""What this process's baselines were compiled for."""
_MODULES = ("triton", "torch._inductor.compile_fx", "cuda.bindings.driver")
_ENVIRONMENT = {
    "TORCHINDUCTOR_CACHE_DIR": CACHE,
    "TRITON_CACHE_DIR": f"{CACHE}/triton",
    "TMPDIR": CACHE,
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
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


@cache
def compiled_folder(whose: str = "") -> Path:
    """Where baselines keep what torch.compile made, as long as this process lives; no candidate ever sees it.

    One for all of the catalogue, whose code is ours, and one for each reference file.
    """
    outer = Path(tempfile.mkdtemp(prefix=f"forge-baseline-{whose[:40]}"))
    atexit.register(shutil.rmtree, outer, ignore_errors=True)
    inside = outer / "inductor"
    inside.mkdir(mode=0o777)
    inside.chmod(0o777)
    return inside


@contextmanager
def compiled_copy() -> Iterator[Path]:
    """What was compiled so far, for one guest alone.

    Some of it is tuned anew in each process and written down again; in PID namespaces of their own, guests that start
    together choose the same names for what they write.
    """
    with tempfile.TemporaryDirectory(prefix="forge-baseline-", ignore_cleanup_errors=True) as outer:
        inside = Path(outer) / "inductor"
        shutil.copytree(compiled_folder(), inside)
        for path in (inside, *inside.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        yield inside


def compiled_for(job: Job) -> tuple[object, ...]:
    """What a baseline is compiled for: the same again finds it done."""
    return (job.operation.name, job.dtype, tuple(sorted(job.shape.items())), job.baselines, job.device)


def require_device(job: Job) -> None:
    """Raise EnvironmentUnfit if the reference itself can't be called on the device: no candidate's fault, then."""
    operation = job.operation
    program = trusted_program(job, {"reference.py": reference_source(operation).encode()})
    stage = Stage(program, job.isolation)
    function = GuestFunction("reference.py", operation.reference.__name__)
    try:
        with loaded(job, stage, job.limits(job.policy.verify_limit_s), function) as probe:
            answer = probe if isinstance(probe, Failed) else probe.call([probe.case(probe.shape)])
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
