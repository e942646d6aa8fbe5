"""Measurements of whole models, with and without adopted kernels."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Digest
from forge.domain.evidence import Isolation
from forge.domain.model_measurement import AdoptedUse, ModelComparison, ModelMode, ModelWorkload
from forge.domain.task import Name
from forge.events.fact import Fact


class ModelMeasured(Fact):
    """A model was run with its own functions and with adopted kernels, side by side, gain or not."""

    model: Name
    """Name of the model's file, without its ending."""
    model_sha256: Digest
    """Digest of the model's file."""
    config_sha256: Digest
    """Digest of the configuration that the file builds the model from, as canonical JSON."""
    workload: ModelWorkload
    mode: ModelMode
    gpu: str
    """Processor that it ran on."""
    env_sha256: Digest
    generation: Digest
    """Digest of the registry's snapshot that decided which kernels ran."""
    uses: Annotated[tuple[AdoptedUse, ...], Field(min_length=1, max_length=1024)]
    comparison: ModelComparison
    conclusive: bool
    """True if the control lies within its band. Otherwise the machine was too noisy for a verdict."""
    process_pairs: Annotated[int, Field(ge=2)]
    rounds: Annotated[int, Field(ge=2)]
    samples_sha256: Digest
    """Digest of the times of all windows."""
    isolation: Isolation
    policy_sha256: Digest
    evidence_level: Literal["end_to_end"] = "end_to_end"
