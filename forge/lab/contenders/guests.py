"""Says what the guest of a contender runs: foreign code behind the wall, alone in its process."""

from pathlib import Path

from forge.lab.baselines import cache_folder, reference_files
from forge.lab.calls.trusted import CACHE_FOLDER, COMPILER_ENVIRONMENT, COMPILER_MODULES, GPU_COMPILER_ENVIRONMENT
from forge.lab.contenders.present import FILE, PresentContender
from forge.lab.job import Job
from forge.languages import LANGUAGES
from forge.sandbox.launch import Bind
from forge.sandbox.stage import Program

OF_A_LIBRARY = "FORGE_GUEST_OF_A_LIBRARY"
"""Environment variable that says to a guest whose function it runs; forge/guest/surroundings.py reads it."""


def contender_program(job: Job, contender: PresentContender, compiled: Path) -> Program:
    """Return the program of a contender's guest; `compiled` is the folder for what its compilers leave.

    Its guests are stopped between exchanges, as a candidate's are.
    """
    on_gpu = job.device == "cuda"
    binds = [Bind(compiled, CACHE_FOLDER, writable=True)]
    if contender.folder is not None:
        binds.append(Bind(contender.folder, str(contender.folder)))
    files = reference_files(job)
    if contender.source is not None:
        files = {**files, FILE: contender.source}
    return Program(
        language=LANGUAGES["torch"],
        files=files,
        environment={
            **(GPU_COMPILER_ENVIRONMENT if on_gpu else COMPILER_ENVIRONMENT),
            **contender.environment,
            OF_A_LIBRARY: "1",
        },
        binds=tuple(binds),
        device=job.device,
        gpu=job.gpu,
        warm=on_gpu,
        modules=COMPILER_MODULES if on_gpu else (),
    )


def contender_folder(job: Job, contender: PresentContender) -> Path:
    """Return the folder for what one contender's compilers leave; no other code reads it."""
    return cache_folder(f"{contender.name} {job.operation.name}")
