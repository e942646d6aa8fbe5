"""The one set of thresholds and limits; its digest is in every event that used it."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Value

IsolationLevel = Literal["none", "bubblewrap", "namespaces"]
"""From the weakest to the strongest; see docs/trust.md."""

MeasuredBaseline = Literal["eager", "compile", "vendor"]
"""The reference as PyTorch runs it, as torch.compile makes it, and the vendor's own fused operator."""
BaselineKind = Literal[MeasuredBaseline, "promoted"]
"""And the kernel that the registry offers now."""
CONTROL_KIND: MeasuredBaseline = "eager"
"""The baseline that is also measured against itself: without it there is no verdict."""
TimingAuthority = Literal["launch_plan", "host_slope"]
"""Whose word a time is: a launcher's that holds no host code of the author, or the host's clock on calls."""


class Policy(Value):
    """Frozen thresholds, read from `policy.toml` in the workspace over these defaults."""

    minimum_speedup: Annotated[float, Field(ge=1.0, le=1000.0)] = 1.10
    """The lower end of the speedup's interval must reach this; a task may ask for more."""
    minimum_isolation: IsolationLevel = "bubblewrap"
    """The weakest wall behind which a verdict may lead to a promotion."""
    build_limit_s: Annotated[float, Field(gt=0, le=3600)] = 240.0
    verify_limit_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    benchmark_limit_s: Annotated[float, Field(gt=0, le=7200)] = 300.0
    memory_limit_bytes: Annotated[int, Field(ge=2**28, le=2**44)] = 8 * 2**30
    """Memory that one guest may allocate."""
    baselines: tuple[MeasuredBaseline, ...] = Field(default=("eager", "compile", "vendor"), min_length=1)
    """Measured through the candidate's own path, where the operation has them; the fastest is the one to beat, or the
    kernel that is promoted now, which is always measured."""
    gpu_timing_authority: TimingAuthority = "launch_plan"
    """What a promotion on a GPU asks for."""
    confirmation: bool = True
    """Whether a kernel that met the rule is measured once more on fresh data; that number is the one reported."""
    process_pairs: Annotated[int, Field(ge=2, le=64)] = 5
    """Fresh guest processes per side; the interval is over these, since processes differ more than calls."""
    rounds: Annotated[int, Field(ge=4, le=400)] = 12
    """Paired measurements within one process pair, by the host's clock; up to four times as many where the baseline
    against itself is noisy."""
    replay_rounds: Annotated[int, Field(ge=4, le=400)] = 24
    """Paired measurements within one process pair, by graph replay."""
    control_half_width: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """Widest interval (as a relative half-width) of the baseline against itself; beyond it there's no verdict."""
    replay_control_half_width: Annotated[float, Field(gt=0, le=0.5)] = 0.02
    """The same, where times are taken by graph replay."""
    most_dropped: Annotated[float, Field(ge=0, le=0.5)] = 0.2
    """Largest share of blocks that may be left out because the device was shared or held back; beyond it there's no
    verdict."""
    floor_slack: Annotated[float, Field(gt=0, le=1)] = 0.97
    """A time below this share of the floor is refused as impossible."""
    sanitizer: bool = True
    """Whether compiled candidates are run once more under a memory checker."""
    tolerance_baseline_multiple: Annotated[float, Field(ge=1, le=16)] = 4.0
    """The first term of the bound: this many times the baseline's own error in the row, in proportion to size."""
    tolerance_accumulate_multiple: Annotated[float, Field(ge=1, le=16)] = 2.0
    """The factor c in `u_out |y| + c u_acc (sqrt(n) + 8) S`."""
