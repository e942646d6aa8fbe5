"""A task: the operation, the processor, the shape and the terms of judgement, all frozen."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from forge.domain.contender import OwnContender
from forge.domain.digest import Digest, Value, digest_of, is_empty, is_unset
from forge.domain.kernel_domain import KernelDomain
from forge.domain.policy import MeasuredBaseline
from forge.domain.shape_slug import shape_slug
from forge.domain.target import Target
from forge.domain.tensors import DType, Shape

LanguageName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,31}$")]
"""Name of a language. `forge.languages` knows all of them; a task is created for one of these only, and a candidate
must be in its task's language."""
Objective = Literal["latency", "throughput", "memory", "balanced"]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
BaselineChoice = Literal["best", MeasuredBaseline]


MOST_FURTHER_SHAPES = 7
"""Largest number of further shapes of a task. Each takes as long to time as the first."""


class Task(Value):
    """A frozen request. Two tasks with the same content are the same task."""

    op: Name
    language: LanguageName
    target: Target
    dtype: DType
    shape: Shape
    """Sizes of the public workload. A promotion is for this shape."""
    further_shapes: tuple[Shape, ...] = Field(default=(), max_length=MOST_FURTHER_SHAPES, exclude_if=is_empty)
    """Further shapes at which a candidate is verified and timed. A kernel that is promoted for `shape` is promoted
    for each of them at which the rule holds, too. Left out of a task without any, so that its id stays as it was."""
    objective: Objective = "latency"
    constraints: dict[str, str] = Field(default_factory=dict)
    model_family: str | None = None
    minimum_speedup: Annotated[float, Field(ge=1.0, le=1000.0)]
    baseline: BaselineChoice = "best"
    """Baseline that must be beaten. All baselines are measured and recorded in any case."""
    baselines: tuple[MeasuredBaseline, ...]
    scalars: dict[str, float] = Field(default_factory=dict)
    reference_sha256: Digest
    """Digest of the PyTorch reference's source text."""
    inputs_sha256: Digest
    """Digest of the input generator's source text."""
    tolerance_sha256: Digest
    """Digest of the error bound: its derivation, the oracle's source text and the policy's multipliers."""
    held_out_sha256: Digest
    """Digest of the shapes that the author isn't shown. They were drawn when the task was created."""
    policy_sha256: Digest
    contenders: tuple[OwnContender, ...] = Field(default=(), max_length=8, exclude_if=is_empty)
    """Files of the user that candidates are measured against, besides the contenders of libraries. Left out of a task
    without any, so that tasks from before this field keep their ids."""
    domain: KernelDomain | None = Field(default=None, exclude_if=is_unset)
    """Least domain of a candidate, which its own domain must hold. None: a candidate must hold the shape alone."""

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape and the further ones."""
        return (self.shape, *self.further_shapes)

    @property
    def family(self) -> str:
        """`<lang>_<op>_<gpu>_<dtype>_<shape>`: kernel versions are numbered within a family."""
        return f"{self.language}_{self.op}_{self.target.gpu}_{self.dtype}_{shape_slug(self.shape)}"

    @property
    def task_id(self) -> str:
        """The family and the first eight digits of the content's digest."""
        return f"{self.family}_{digest_of(self)[:8]}"


class HeldOut(Value):
    """The shapes behind `Task.held_out_sha256`. The random `salt` prevents guessing them from the digest."""

    salt: Digest
    shapes: tuple[Shape, ...]
