"""The evidence of gates and clocks: observed values, limits, times, with units."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.device import DeviceState
from forge.domain.digest import Digest, Value, is_unset
from forge.domain.policy import BaselineKind, IsolationLevel, TimingAuthority
from forge.domain.tensors import Shape

Positive = Annotated[float, Field(gt=0)]


class Isolation(Value):
    """The sandbox that a guest ran in, as observed when it started."""

    level: IsolationLevel
    parts: tuple[str, ...]
    missing: tuple[str, ...]


class GateResult(Value):
    """One gate's answer: the value it observed and the value it allows."""

    name: str
    verdict: Literal["passed", "failed", "not asked"]
    """`not asked`: the gate's question can't be put here, which `observed` explains. Older events say `passed`."""
    observed: str
    threshold: str


class WorkloadErrors(Value):
    """The candidate's largest errors against the fp64 oracle, for one kind of input at one shape."""

    shape: Shape
    inputs: str
    max_relative_error: Annotated[float, Field(ge=0)]
    """Largest |y - y*| / S over finite elements; docs/numerics.md defines S."""
    bound_used: Annotated[float, Field(ge=0)]
    """Largest |y - y*| / bound over finite elements: at most 1 for an accepted candidate."""


class Values(Value):
    """One whole operand or result that is small enough to read."""

    name: str
    sizes: tuple[int, ...]
    values: tuple[str, ...]
    """Elements as Python prints them, in row-major order."""


class Counterexample(Value):
    """The smallest failing case that was found."""

    shape: Shape
    inputs: str
    """Kind of input values: how they were drawn, or how shrinking made them."""
    output: str
    index: tuple[int, ...]
    expected: str
    got: str
    allowed_error: str
    snippet: str
    """Python program that reproduces the failure, with kernel.py in the same folder."""
    seed: int | None = None
    """Seed that the values were drawn with. None: `operands` lists the values."""
    operands: tuple[Values, ...] = ()
    """Inputs, if they have few enough values to list."""
    expected_values: Values | None = None
    """Whole expected output, if it is small enough to list."""
    got_values: Values | None = None
    """Whole output of the candidate, if it is small enough to list."""
    wrong_elements: str | None = None
    """Clause that says which elements of the output are wrong. None in refusals from before this was recorded."""
    wrong_from: int | None = None
    """Index along some axis from which on the elements are wrong, and before which none is; None without one."""
    shrunk_from: Shape | None = None
    """Shape of the first failure, if shrinking found a smaller case that also fails."""


class Admission(Value):
    """The score of a task's inputs and bound on known wrong and right answers, before the task was opened."""

    mutants: Annotated[int, Field(ge=1)]
    """Number of known wrong answers that were tried."""
    killed: Annotated[int, Field(ge=0)]
    """Number of these that were refused."""
    survivors: tuple[str, ...] = ()
    """Names of wrong answers that would be accepted."""
    honest: Annotated[int, Field(ge=1)]
    """Number of right answers, computed in other ways, that were tried."""
    refused: tuple[str, ...] = ()
    """Names of right answers that would be refused."""


class Interval(Value):
    """A ratio with its two-sided 95 % interval."""

    ratio: Positive
    low: Positive
    high: Positive


class Timing(Value):
    """The time per call of one side, over all rounds of all process pairs."""

    n: Annotated[int, Field(ge=1)]
    median_ns: Positive
    p10_ns: Positive
    p90_ns: Positive
    mad_ns: Annotated[float, Field(ge=0)]
    method: TimingAuthority


class Speedup(Value):
    """The ratio of baseline time to candidate time for one baseline, from paired rounds."""

    baseline: BaselineKind
    baseline_median_ns: Positive
    interval: Interval
    pairs_lost: Annotated[int, Field(ge=0)]
    """Number of process pairs whose ratio is 1 or less."""


class Confirmation(Value):
    """A second measurement of a candidate that met the rule, with new processes and data.

    It removes the selection bias of the first.
    """

    candidate: Timing
    speedups: tuple[Speedup, ...]
    control: Interval
    process_pairs: Annotated[int, Field(ge=1)]


class Replay(Value):
    """The facts of a measurement by graph replay on a device."""

    plan_sha256: Digest
    """Digest of the launch plan that was timed."""
    sets: Annotated[int, Field(ge=1)]
    """Number of operand sets that calls use in turn."""
    set_bytes: Annotated[int, Field(ge=1)]
    """Size of the inputs and outputs of one call."""
    host_ratio: tuple[Positive, ...]
    """Ratio of the time by the host's clock to the time by the device's events, for each process pair."""
    states: tuple[DeviceState, ...]
    """State of the device before the first block and after the last one."""
    blocks: Annotated[int, Field(ge=1)]
    """Number of blocks that were measured."""
    dropped: Annotated[int, Field(ge=0)]
    """Number of blocks left out for all sides, because the device was shared or its clocks were lowered."""
    gpu_s: Positive
    """Device time of this measurement, in seconds, all sides together."""


class ResidentTiming(Value):
    """A measurement with all operands in the last-level cache, in the same processes as the cold one."""

    candidate: Timing
    speedups: tuple[Speedup, ...]
    control: Interval
    floor_ns: Positive
    """Shortest possible time if every byte comes from the cache."""
    process_pairs: Annotated[int, Field(ge=1)]
    rounds: Annotated[int, Field(ge=1)]
    confirmation: Confirmation | None = None


class Residency(Value):
    """Whether the operands of a call fit into half of the last-level cache, and the times if they do."""

    cache_bytes: int | None
    """Size of the last-level cache. None: it isn't known."""
    operand_bytes: Annotated[int, Field(ge=0)]
    """Size of the inputs and outputs of one call."""
    timing: ResidentTiming | None
    why_not: str | None
    """Reason why there are no times. None: there are."""


class WorkloadTiming(Value):
    """All measurements at one shape."""

    shape: Shape
    candidate: Timing
    speedups: tuple[Speedup, ...]
    control: Interval
    """Ratio of the baseline to itself, measured through the same path."""
    harness_ns: Annotated[float, Field(ge=0)]
    """Time per call of the path between host and guest. From `host_slope.v3` on it is subtracted from every time.
    Before, it was the copying of outputs, and every time included it."""
    floor_ns: Positive
    """Shortest possible time on this machine: least traffic over the highest measured rate."""
    floor_fraction: Positive
    """Floor divided by the candidate's median: 1 is as fast as this machine's memory allows."""
    process_pairs: Annotated[int, Field(ge=1)]
    rounds: Annotated[int, Field(ge=1)]
    samples_sha256: Digest
    """Digest of all raw samples, as the run stores them."""
    confirmation: Confirmation | None = None
    """Second measurement, if the candidate met the rule and the policy asks for one."""
    replay: Replay | None = None
    protocol: str | None = Field(default=None, exclude_if=is_unset)
    """Measurement protocol of the samples. None: an event that is older than the field."""
    residency: Residency | None = Field(default=None, exclude_if=is_unset)
    """The resident regime; the other figures are of the cold one. None: an event that is older than the field."""


class Coverage(Value):
    """The shapes at which a kernel was verified, and those at which it was measured. These may differ."""

    verified: tuple[Shape, ...]
    measured: tuple[Shape, ...]
