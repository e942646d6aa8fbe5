"""What is answered: plans with every figure's basis, the limits they were held to, and what was left out."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Value
from forge.domain.target import GpuSlug
from forge.domain.tensors import DType, Shape
from forge.recommend.quantization import Backend, Quantization
from forge.recommend.request import Priority, Request, Traffic, Workload
from forge.recommend.roofline import Bound

Basis = Literal["estimated", "measured"]
Score = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]


class PlanFigure(Value):
    """A number, and what it rests on."""

    value: Positive
    basis: Basis
    how: str
    """The formula's name, for an estimate; who measured and which quantile, for a measurement."""


class ConstraintCheck(Value):
    """One constraint, and what the plan comes to."""

    name: str
    limit: float
    found: float
    met: bool


class Scores(Value):
    """How a plan compares with the best of all that fit, from 0 to 1; preferences, not measurements."""

    latency: Score
    throughput: Score
    cost: Score | None
    """Score of the price. None: the price of some compared GPU isn't known."""
    quality: Score
    simplicity: Score
    weighted_total: Score
    meets_latency: bool | None
    meets_throughput: bool | None
    meets_budget: bool | None
    meets_memory: bool | None


class KernelOptimizationMetadata(Value):
    """A verified kernel that could serve one operation of the plan: an opportunity, which nothing else counts on."""

    available: Literal[True] = True
    applied: Literal[False] = False
    kernel_id: str
    op: str
    language: str
    gpu: GpuSlug
    dtype: DType
    speedup: Positive
    speedup_low: Positive
    speedup_high: Positive
    """Ends of the speedup's two-sided 95 % interval."""
    baseline: str
    shape: Shape
    """Shape at which the speedup was measured. The speedup holds only there."""
    model_shape: Shape
    """Shape of the operation in this model under this plan."""
    match: Literal["exact", "covered", "nearest"]
    """Place of the model's shape among those that the kernel was verified at."""
    octaves: Annotated[float, Field(ge=0)]
    """Distance between the measured shape and the model's, in octaves summed over the axes."""
    evidence_level: Literal["op_level"] = "op_level"
    benchmark_scope: Literal["microbenchmark"] = "microbenchmark"
    verified_seq: int
    benchmark_seq: int
    promoted_seq: int
    """Sequence numbers of the events that verified, measured and promoted the kernel."""
    notes: str = ""


class Plan(Value):
    """One way to deploy the model, as one replica."""

    rank: Annotated[int, Field(ge=1)]
    model: str
    gpu: GpuSlug
    gpu_name: str
    gpus: Annotated[int, Field(ge=1)]
    tensor_parallel: Annotated[int, Field(ge=1)]
    """Devices that each layer is split over: the GPUs, or more where one GPU is several devices."""
    backend: Backend
    other_backends: tuple[Backend, ...]
    """Other backends that can run the same plan. The estimate is the same for each of them."""
    quantization: Quantization
    activation_dtypes: tuple[DType, ...]
    traffic: Traffic
    context_tokens: int
    running_requests: int
    """Number of the asked concurrent requests that fit into memory together."""
    ttft_ms: PlanFigure
    tpot_ms: PlanFigure | None
    latency_ms: PlanFigure
    throughput_tok_s: PlanFigure
    memory_gb: PlanFigure
    """Memory of each GPU."""
    memory_available_gb: Positive | None
    prefill_bound: Bound | None
    decode_bound: Bound | None
    price_per_hour: Positive | None
    price_per_month: Positive | None
    price_per_million_tokens: Positive | None
    benchmark_source: Basis
    scores: Scores
    checks: tuple[ConstraintCheck, ...]
    meets_constraints: bool
    is_recommended: bool
    is_over_provisioned: bool | None
    """Whether it costs much more an hour than another plan that meets everything; None where prices are missing."""
    explanation: str
    kernel_optimizations: tuple[KernelOptimizationMetadata, ...] = ()
    notes: tuple[str, ...] = ()


class LeftOut(Value):
    """A GPU without any plan, and why."""

    gpu: str
    reason: str


class Recommendation(Value):
    """The answer to one request."""

    model: str
    model_name: str
    workload: Workload
    priority: Priority
    request: Request
    recommended: Plan | None
    """Best plan. None: no plan meets the constraints."""
    alternatives: tuple[Plan, ...]
    """The next best that meet them; if none does, the nearest, the one that misses least first."""
    considered: int
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    summary: str

    @property
    def plans(self) -> tuple[Plan, ...]:
        """All that are shown, by rank."""
        return (() if self.recommended is None else (self.recommended,)) + self.alternatives
