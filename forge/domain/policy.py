"""The one set of thresholds and limits; its digest is in every event that used it."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Value

IsolationLevel = Literal["none", "bubblewrap", "namespaces"]
"""From the weakest to the strongest; see docs/trust.md."""

BaselineKind = Literal["eager", "compile"]


class Policy(Value):
    """Frozen thresholds, read from `policy.toml` in the workspace over these defaults."""

    minimum_speedup: Annotated[float, Field(ge=1.0, le=1000.0)] = 1.10
    """The lower end of the speedup's interval must reach this; a task may ask for more."""
    minimum_isolation: IsolationLevel = "bubblewrap"
    """The weakest wall behind which a verdict may lead to a promotion."""
    build_limit_s: Annotated[float, Field(gt=0, le=3600)] = 240.0
    verify_limit_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    benchmark_limit_s: Annotated[float, Field(gt=0, le=7200)] = 300.0
    memory_limit_bytes: Annotated[int, Field(ge=2**28)] = 8 * 2**30
    """Memory that one guest may allocate."""
    baselines: tuple[BaselineKind, ...] = Field(default=("eager", "compile"), min_length=1)
    """Measured through the candidate's own path; the fastest is the one to beat."""
    process_pairs: Annotated[int, Field(ge=2, le=64)] = 5
    """Fresh guest processes per side; the interval is over these, since processes differ more than calls."""
    rounds: Annotated[int, Field(ge=4, le=400)] = 12
    """Paired measurements within one process pair."""
    control_half_width: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """Widest interval (as a relative half-width) of the baseline against itself; beyond it there's no verdict."""
    floor_slack: Annotated[float, Field(gt=0, le=1)] = 0.97
    """A time below this share of the floor is refused as impossible."""
    sanitizer: bool = True
    """Whether compiled candidates are run once more under a memory checker."""
    tolerance_baseline_multiple: Annotated[float, Field(ge=1, le=16)] = 4.0
    """The first term of the bound: this many times the baseline's own error in the same row."""
    tolerance_accumulate_multiple: Annotated[float, Field(ge=1, le=16)] = 2.0
    """The factor c in `u_out |y| + c u_acc (sqrt(n) + 8) S`."""
