"""The same candidate once more, under a tool that watches every access to memory.

`address` for what the builder compiles for the host, `compute` for what runs on an NVIDIA GPU. Python and its
interpreters have no native code of the candidate's to watch.
"""

from forge.lab.finding import Finding
from forge.lab.job import Job
from forge.lab.sanitizer import address, compute
from forge.sandbox.reply import ArtifactFile

__all__ = ["applies", "examine"]


def applies(job: Job) -> bool:
    """Whether there is code of the candidate's that a tool can watch.

    For a reference file a candidate in PyTorch may call any library there is, and what tools say of these is no fault
    of its own.
    """
    if job.device == "cpu":
        return job.policy.sanitizer and job.language.builds
    return job.policy.sanitizer and (job.operation.own is None or job.language.name != "torch")


def examine(job: Job, artifact: tuple[ArtifactFile, ...] = ()) -> Finding:
    """Ask the tool; raise EnvironmentUnfit where this machine lacks it.

    On a GPU what was built is what is watched; for the host it is built once more, with the tool inside.
    """
    return compute.examine(job, artifact) if job.device == "cuda" else address.examine(job)
