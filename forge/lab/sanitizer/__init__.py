"""Runs the candidate once more under a tool that checks every access to memory.

`address` checks what the builder compiles for the host, `compute` what runs on an NVIDIA GPU. Candidates in Python or
an interpreter have no native code to check.
"""

from forge.lab.finding import Finding
from forge.lab.job import Job
from forge.lab.sanitizer import address, compute
from forge.sandbox.reply import ArtifactFile

__all__ = ["applies", "examine"]


def applies(job: Job) -> bool:
    """Return whether the candidate has code that a tool can check.

    A candidate in PyTorch that may call any library isn't checked: reports about libraries aren't its fault.
    """
    if job.device == "cpu":
        return job.policy.sanitizer and job.language.builds
    return job.policy.sanitizer and not (job.definition.allows_libraries and job.language.name == "torch")


def examine(job: Job, artifact: tuple[ArtifactFile, ...] = ()) -> Finding:
    """Run the tool; raise EnvironmentUnfit if this machine lacks it.

    On a GPU the built files themselves are checked. For the host they are built once more, with the tool inside.
    """
    return compute.examine(job, artifact) if job.device == "cuda" else address.examine(job)
