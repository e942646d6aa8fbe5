"""Turns a recorded candidate into a job for the lab."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from forge.domain.candidate import Metadata
from forge.domain.device import Device
from forge.domain.digest import Digest, canonical, sha256
from forge.domain.environment import Environment, GpuFacts
from forge.domain.evidence import Isolation
from forge.domain.policy import Policy
from forge.domain.task import HeldOut, Task
from forge.errors import EnvironmentUnfit
from forge.events import CandidateSubmitted
from forge.executor import Site
from forge.lab.inputs.seeded import new_seed
from forge.lab.job import ContenderFile, Job, allowance_of
from forge.languages import find_language
from forge.operations import find_operation
from forge.pipeline.held_out import drawn_for_one
from forge.platforms import PROCESSORS
from forge.sandbox.reply import ArtifactFile


@dataclass(frozen=True, kw_only=True)
class RecordedCandidate:
    """Input of verification and benchmark: the recorded candidate, its bytes, and the machine."""

    run_id: str
    task: Task
    held_out: HeldOut
    submitted: CandidateSubmitted
    files: Mapping[str, bytes]
    policy: Policy
    environment: Environment
    isolation: Isolation
    gates_sha256: Digest
    """Version of the judge where the job runs."""
    attempt: int
    retry_of: int | None
    contender_files: tuple[ContenderFile, ...] = ()
    """Files that the task names to measure candidates against."""
    gpu: Device | None = None
    """GPU of this machine that was chosen. None: the processor."""
    process_sha256: Digest | None = None
    """Digest that names the process tree that measures."""
    draws_held_out: bool = False
    """Whether held-out shapes are drawn for this candidate alone, instead of the task's."""


def job_of(evidence: RecordedCandidate) -> Job:
    """Return the lab's job, which names no run, no author and no ledger; raise EnvironmentUnfit as `simulated`."""
    return _job(evidence, interpreted=simulated(evidence))


def build_job_of(evidence: RecordedCandidate) -> Job:
    """Return the job of screening and building a candidate whose target isn't in this machine."""
    return _job(evidence, interpreted=False)


def _job(evidence: RecordedCandidate, *, interpreted: bool) -> Job:
    task, operation, seed = evidence.task, find_operation(evidence.task.op), new_seed()
    held_out = evidence.held_out.shapes
    if evidence.draws_held_out:
        held_out = drawn_for_one(task, operation, evidence.held_out, seed)
    return Job(
        operation=operation,
        language=find_language(task.language),
        shape=task.shape,
        held_out=(*task.further_shapes, *held_out),
        dtype=task.dtype,
        policy=evidence.policy,
        isolation=evidence.isolation,
        files=evidence.files,
        metadata=Metadata.model_validate(orjson.loads(evidence.files["metadata.json"])),
        entry_point=evidence.submitted.files.entry_point,
        interpreted=interpreted,
        device="cuda" if on_gpu(evidence) else "cpu",
        gpu=evidence.gpu if on_gpu(evidence) else None,
        arch=PROCESSORS[task.target.gpu].arch,
        contender_files=evidence.contender_files,
        allowance=allowance_of(evidence.policy),
        seed=seed,
    )


def screening_job(task: Task, policy: Policy, site: Site) -> Job:
    """Return the job of a task without a candidate: on the site's GPU if it is the task's, else on its processor."""
    runs_here = runs_on(task, site.environment.gpu)
    at_gpu = _is_model(task, site.environment.gpu)
    return Job(
        operation=find_operation(task.op),
        language=find_language(task.language),
        shape=task.shape,
        held_out=(),
        dtype=task.dtype,
        policy=policy,
        isolation=site.isolation,
        files={},
        metadata=Metadata(name="screening", op=task.op, language=task.language),
        entry_point=task.op,
        interpreted=not runs_here,
        device="cuda" if at_gpu else "cpu",
        gpu=site.device if at_gpu else None,
        arch=PROCESSORS[task.target.gpu].arch,
    )


def on_gpu(evidence: RecordedCandidate) -> bool:
    """Return True if the target is a GPU and this machine has a GPU of exactly that model."""
    return _is_model(evidence.task, evidence.environment.gpu)


def runs_on(task: Task, gpu: GpuFacts | None) -> bool:
    """Return True if a task's kernels run on a machine with this GPU, with no interpreter in their place."""
    on_processor = task.target.platform == "cpu" and "cpu" in find_language(task.language).times_on
    return on_processor or _is_model(task, gpu)


def _is_model(task: Task, gpu: GpuFacts | None) -> bool:
    return task.target.platform == "cuda" and gpu is not None and gpu.slug == task.target.gpu


def simulated(evidence: RecordedCandidate) -> bool:
    """Return True if an interpreter stands in for the target; raise EnvironmentUnfit if nothing can run it here."""
    task, language = evidence.task, find_language(evidence.task.language)
    if runs_on(task, evidence.environment.gpu):
        return False
    if "cpu" in language.stands_in_on:
        return True
    raise EnvironmentUnfit(
        f"{language.name} kernels for {task.target.gpu!r} can't be run on this machine: expected a {task.target.gpu}"
    )


def pack_artifact(files: tuple[ArtifactFile, ...]) -> tuple[Digest | None, tuple[bytes, ...]]:
    """Return the digest of the listing of the built files, and the blobs to store: the listing and the files."""
    if not files:
        return None, ()
    listing = canonical({"files": listed(files)})
    return sha256(listing), (listing, *(file.content for file in files))


def listed(files: tuple[ArtifactFile, ...]) -> list[dict[str, object]]:
    """Return the listing of the built files: name, digest and size of each."""
    return [{"path": f.name, "sha256": sha256(f.content), "size_bytes": len(f.content)} for f in files]
