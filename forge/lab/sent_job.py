"""A job as it is sent elsewhere: names of what Forge has there, and bytes of what only the caller has."""

from typing import Literal

from pydantic import ConfigDict

from forge.domain.candidate import Metadata
from forge.domain.contender import OwnContender
from forge.domain.device import Device
from forge.domain.digest import Value
from forge.domain.evidence import Isolation
from forge.domain.own_operation import Contract
from forge.domain.policy import Policy
from forge.domain.task import LanguageName
from forge.domain.tensors import DType
from forge.lab.job import ContenderFile, Job
from forge.languages import find_language
from forge.operations import find_operation
from forge.operations.own import make_known, own_operation

BYTES_AS_BASE64 = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
"""Settings of what is sent as JSON: bytes in base64, numbers with their infinities."""


class Sent(Value):
    """A value that is sent as JSON."""

    model_config = BYTES_AS_BASE64


class SentReference(Sent):
    """The reference file of a user's own operation, and its contract."""

    contract: Contract
    source: bytes


class SentContender(Sent):
    """A file of the user that candidates are measured against."""

    described: OwnContender
    source: bytes


class SentJob(Sent):
    """Everything of a job."""

    op: str
    own: SentReference | None
    language: LanguageName
    shape: dict[str, int]
    held_out: tuple[dict[str, int], ...]
    dtype: DType
    policy: Policy
    isolation: Isolation
    files: dict[str, bytes]
    metadata: Metadata
    entry_point: str
    interpreted: bool
    device: Literal["cpu", "cuda"]
    gpu: Device | None
    arch: str
    contender_files: tuple[SentContender, ...]
    seed: int


def sent(job: Job) -> SentJob:
    """Return a job in the form in which it is sent."""
    own = job.operation.own
    return SentJob(
        op=job.operation.name,
        own=None if own is None else SentReference(contract=own.contract, source=own.source),
        language=job.language.name,
        shape=dict(job.shape),
        held_out=tuple(dict(shape) for shape in job.held_out),
        dtype=job.dtype,
        policy=job.policy,
        isolation=job.isolation,
        files=dict(job.files),
        metadata=job.metadata,
        entry_point=job.entry_point,
        interpreted=job.interpreted,
        device=job.device,
        gpu=job.gpu,
        arch=job.arch,
        contender_files=tuple(
            SentContender(described=one.described, source=one.source) for one in job.contender_files
        ),
        seed=job.seed,
    )


def received(job: SentJob) -> Job:
    """Return the job that was sent; raise UnknownName for an operation that this Forge doesn't have."""
    if job.own is not None:
        make_known(own_operation(job.own.contract, job.own.source))
    return Job(
        operation=find_operation(job.op),
        language=find_language(job.language),
        shape=job.shape,
        held_out=job.held_out,
        dtype=job.dtype,
        policy=job.policy,
        isolation=job.isolation,
        files=job.files,
        metadata=job.metadata,
        entry_point=job.entry_point,
        interpreted=job.interpreted,
        device=job.device,
        gpu=job.gpu,
        arch=job.arch,
        contender_files=tuple(
            ContenderFile(described=one.described, source=one.source) for one in job.contender_files
        ),
        seed=job.seed,
    )
