"""What is wanted, frozen: the operation, for which processor, at which shape, judged how."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from forge.domain.digest import Digest, Value, digest_of
from forge.domain.policy import MeasuredBaseline
from forge.domain.target import Target
from forge.domain.tensors import DType, Shape, shape_slug

LanguageName = Literal["cpp", "cuda", "triton", "torch"]
Objective = Literal["latency", "throughput", "memory", "balanced"]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
BaselineChoice = Literal["best", MeasuredBaseline]


class Task(Value):
    """A frozen request. Two tasks with the same content are the same task."""

    op: Name
    language: LanguageName
    target: Target
    dtype: DType
    shape: Shape
    """The public workload; promotion holds for this one."""
    objective: Objective = "latency"
    constraints: dict[str, str] = Field(default_factory=dict)
    model_family: str | None = None
    minimum_speedup: Annotated[float, Field(ge=1.0, le=1000.0)]
    baseline: BaselineChoice = "best"
    """Which baseline must be beaten; all are measured and recorded either way."""
    baselines: tuple[MeasuredBaseline, ...]
    scalars: dict[str, float] = Field(default_factory=dict)
    reference_sha256: Digest
    """The PyTorch reference's source text."""
    inputs_sha256: Digest
    """The input generator's source text."""
    tolerance_sha256: Digest
    """The derivation of the error bound: its source text and the policy's multipliers."""
    held_out_sha256: Digest
    """Shapes that the author isn't shown, drawn when the task was created."""
    policy_sha256: Digest

    @property
    def family(self) -> str:
        """`<lang>_<op>_<gpu>_<dtype>_<shape>`: what kernel versions are counted in."""
        return f"{self.language}_{self.op}_{self.target.gpu}_{self.dtype}_{shape_slug(self.shape)}"

    @property
    def task_id(self) -> str:
        """The family and eight digits of the content's digest."""
        return f"{self.family}_{digest_of(self)[:8]}"


class HeldOut(Value):
    """The shapes behind `Task.held_out_sha256`; `salt` keeps them from being guessed from the digest."""

    salt: Digest
    shapes: tuple[Shape, ...]
