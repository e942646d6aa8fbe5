"""What a gate saw and what a clock saw, with units."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.device import DeviceState
from forge.domain.digest import Digest, Value
from forge.domain.policy import BaselineKind, IsolationLevel, TimingAuthority
from forge.domain.tensors import Shape

Positive = Annotated[float, Field(gt=0)]


class Isolation(Value):
    """The wall a guest ran behind, as observed when it started."""

    level: IsolationLevel
    parts: tuple[str, ...]
    missing: tuple[str, ...]


class GateResult(Value):
    """One gate's answer: what it saw against what it allows."""

    name: str
    verdict: Literal["passed", "failed"]
    observed: str
    threshold: str


class WorkloadErrors(Value):
    """How far the candidate was from the fp64 oracle on one kind of input at one shape."""

    shape: Shape
    inputs: str
    max_relative_error: Annotated[float, Field(ge=0)]
    """Largest |y - y*| / S over finite elements."""
    bound_used: Annotated[float, Field(ge=0)]
    """Largest |y - y*| / bound: at most 1 for an accepted candidate."""


class Values(Value):
    """One whole operand or result, small enough to be looked at."""

    name: str
    sizes: tuple[int, ...]
    values: tuple[str, ...]
    """Every element, the last axis fastest, as Python writes it."""


class Counterexample(Value):
    """The smallest failing case found, enough to see what is wrong."""

    shape: Shape
    inputs: str
    """The kind of values: how they were drawn, or how they were made when the case was shrunk."""
    output: str
    index: tuple[int, ...]
    expected: str
    got: str
    allowed_error: str
    snippet: str
    """Python that reproduces it with kernel.py beside it."""
    seed: int | None = None
    """What the values were drawn with; none where they are written out."""
    operands: tuple[Values, ...] = ()
    """The inputs, where there are few enough values."""
    expected_values: Values | None = None
    """The whole output as it should be, where it is small enough; `got_values` likewise."""
    got_values: Values | None = None
    shrunk_from: Shape | None = None
    """Where it failed first, if a smaller case was found that fails as well."""


class Admission(Value):
    """How a task's own inputs and bound told wrong answers from right ones, before it was opened."""

    mutants: Annotated[int, Field(ge=1)]
    """Known wrong answers that were tried."""
    killed: Annotated[int, Field(ge=0)]
    survivors: tuple[str, ...] = ()
    """Wrong answers that would be accepted."""
    honest: Annotated[int, Field(ge=1)]
    """Right answers, computed in other ways, that were tried."""
    refused: tuple[str, ...] = ()
    """Right answers that would be refused."""


class Interval(Value):
    """A ratio with its two-sided 95 % interval."""

    ratio: Positive
    low: Positive
    high: Positive


class Timing(Value):
    """Time per call of one side, over every round of every process pair."""

    n: Annotated[int, Field(ge=1)]
    median_ns: Positive
    p10_ns: Positive
    p90_ns: Positive
    mad_ns: Annotated[float, Field(ge=0)]
    method: TimingAuthority


class Speedup(Value):
    """baseline / candidate for one baseline, from paired rounds."""

    baseline: BaselineKind
    baseline_median_ns: Positive
    interval: Interval
    pairs_lost: Annotated[int, Field(ge=0)]
    """Process pairs in which the candidate was the slower one."""


class Confirmation(Value):
    """A winner measured once more, over fresh processes and data: free of the luck that made it the winner."""

    candidate: Timing
    speedups: tuple[Speedup, ...]
    control: Interval
    process_pairs: Annotated[int, Field(ge=1)]


class Replay(Value):
    """What is particular to times taken by graph replay on a device."""

    plan_sha256: Digest
    """The launch plan that was timed."""
    sets: Annotated[int, Field(ge=1)]
    """Operand sets used in turn."""
    set_bytes: Annotated[int, Field(ge=1)]
    """Inputs and outputs of one call."""
    host_ratio: tuple[Positive, ...]
    """Per process pair, the time by the host's slope over that by the device's events."""
    states: tuple[DeviceState, ...]
    """What the device said of itself, before the first and after the last block."""
    blocks: Annotated[int, Field(ge=1)]
    dropped: Annotated[int, Field(ge=0)]
    """Blocks left out on all sides, since the device was shared or its clocks were held back."""
    gpu_s: Positive
    """Seconds that the device computed for this measurement, all sides together."""


class WorkloadTiming(Value):
    """Everything measured at one shape."""

    shape: Shape
    candidate: Timing
    speedups: tuple[Speedup, ...]
    control: Interval
    """The baseline against itself through the same path."""
    harness_ns: Annotated[float, Field(ge=0)]
    """What the path itself takes per call. By `host_slope.v3` it is subtracted from every time; before, it was
    copying the outputs out, and a part of every time."""
    floor_ns: Positive
    floor_fraction: Positive
    """floor / median: 1 is as fast as this machine's memory allows."""
    process_pairs: Annotated[int, Field(ge=1)]
    rounds: Annotated[int, Field(ge=1)]
    samples_sha256: Digest
    """Every raw sample, as stored in the run."""
    confirmation: Confirmation | None = None
    """For a candidate that met the rule, where the policy asks for it."""
    replay: Replay | None = None


class Coverage(Value):
    """Where a kernel was verified and where it was measured: two different questions."""

    verified: tuple[Shape, ...]
    measured: tuple[Shape, ...]
