"""The policy: all thresholds and limits. Every event that used it holds its digest."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from forge.domain.contender import ContenderName, RequiredContender
from forge.domain.digest import Value, is_empty, is_unset

IsolationLevel = Literal["none", "bubblewrap", "namespaces"]
"""Level of a sandbox, from the weakest to the strongest; docs/trust.md describes them."""

MeasuredBaseline = Literal["eager", "compile", "vendor"]
"""Kind of a measured baseline: the reference in eager PyTorch, the reference under torch.compile, or the vendor's own
fused operator."""
BaselineKind = Literal[MeasuredBaseline, "promoted"] | ContenderName
"""Kind of any baseline: a measured one, the incumbent, or a contender. The incumbent is the kernel that the registry
offers now. A contender names a library's kernel and its version, such as contender:liger.softmax@0.5.2."""
PolicyBaseline = Literal[MeasuredBaseline, "contenders"]
"""Name in a policy: a measured baseline, or all contenders that are installed."""
CONTROL_KIND: MeasuredBaseline = "eager"
"""Baseline that is also measured against itself, as a control. Without a control there is no verdict."""
TimingAuthority = Literal["launch_plan", "host_slope"]
"""Source of a time: a launcher that runs none of the author's host code, or the host's clock around calls."""


Regime = Literal["cold", "resident"]
"""State of the last-level cache at a call: `cold` holds no operand, `resident` holds all, written just before."""


CALM = 0.02
"""Standard error up to which a pair's median log ratio of the baseline to itself counts as calm. The mean of five
such pairs is known within 2.5 %."""
CALM_SHARE = 0.4
"""Share of the control's half-width that does for a pair's standard error. Chosen: `CALM` of the usual 0.05. A
narrower band keeps `CALM`, since more rounds don't narrow what processes differ by."""


class Policy(Value):
    """The thresholds of a workspace: those of `new_policy`, replaced by the values in its `policy.toml`.

    A default here is what a recorded policy means by leaving a field out, so it never changes.
    """

    minimum_speedup: Annotated[float, Field(ge=1.0, le=1000.0)] = 1.10
    """Smallest lower end of the speedup's interval that is promoted. A task may ask for more."""
    minimum_isolation: IsolationLevel = "bubblewrap"
    """Weakest sandbox whose verdicts may lead to a promotion."""
    build_limit_s: Annotated[float, Field(gt=0, le=3600)] = 240.0
    """Processor time that one build may take, in seconds."""
    verify_limit_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    """Processor time that one thread of a guest may take in verification, in seconds."""
    benchmark_limit_s: Annotated[float, Field(gt=0, le=7200)] = 300.0
    """Limit in seconds for two times in a benchmark. One is a thread's processor time for one reply, the other the
    time of all calls of one candidate."""
    candidate_limit_s: Annotated[float, Field(gt=0, le=86_400)] | None = Field(default=None, exclude_if=is_unset)
    """Processor time that all guests of one candidate may take together in one verification or one benchmark, in
    seconds. A new workspace has 1200. None, as in policies that are older than the field: only each guest is
    limited."""
    memory_limit_bytes: Annotated[int, Field(ge=2**28, le=2**44)] = 8 * 2**30
    """Memory that one guest may allocate, in bytes. Chosen; each guest that runs at once may take as much."""
    baselines: tuple[PolicyBaseline, ...] = Field(default=("eager", "compile", "vendor"), min_length=1)
    """Baselines that are measured, through the candidate's own path, if the operation has them. `contenders` means
    every contender that is installed and applies. The incumbent is always measured too. The fastest of all is the one
    to beat."""
    required_contenders: tuple[RequiredContender, ...] = Field(default=(), exclude_if=is_empty)
    """Contenders that must be there where they apply to a task, by name or by library, as `["liger"]`. Without one of
    them nothing is timed and nothing is promoted. Others that aren't installed are only named in the entry."""
    gpu_timing_authority: TimingAuthority = "launch_plan"
    """Source of time that a promotion on a GPU requires."""
    regimes: tuple[Regime, ...] = Field(default=("cold",), min_length=1, exclude_if=lambda named: named == ("cold",))
    """Regimes that must be won. The resident one applies where all operands of a call fit into half of the last-level
    cache. The cold one is always among them, since a registry ranks by it. A workspace asks for both unless its
    `policy.toml` says otherwise; a recorded policy that names none asked for the cold one alone."""
    confirmation: bool = True
    """True if a kernel that met the rule is measured again on new data. That second number is the one reported."""
    process_pairs: Annotated[int, Field(ge=2, le=64)] = 5
    """Number of new guest processes for each side. The interval is over these, because processes differ more than
    calls."""
    rounds: Annotated[int, Field(ge=4, le=400)] = 12
    """Number of paired measurements within one process pair, by the host's clock. It grows up to four times if the
    control is noisy. Chosen: two blocks of six; a pair takes longer with more."""
    replay_rounds: Annotated[int, Field(ge=4, le=400)] = 24
    """Number of paired measurements within one process pair, by graph replay. Chosen: four blocks of six; a pair
    takes longer with more."""
    control_half_width: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """Largest relative half-width of the control's interval, by the host's clock. Beyond it there is no verdict.
    Chosen: half of a tenth, the gain that a promotion usually asks."""
    replay_control_half_width: Annotated[float, Field(gt=0, le=0.5)] = 0.02
    """Largest relative half-width of the control's interval, by graph replay. Beyond it there is no verdict. Chosen:
    a fifth of a tenth, the gain that a promotion usually asks."""
    most_dropped: Annotated[float, Field(ge=0, le=0.5)] = 0.2
    """Largest share of blocks that may be left out because the device was shared or its clocks were lowered. Beyond
    it there is no verdict."""
    floor_slack: Annotated[float, Field(gt=0, le=1)] = 0.97
    """Share of the floor below which a time is refused as impossible."""
    sanitizer: bool = True
    """True if compiled candidates also run under a memory checker."""
    tolerance_baseline_multiple: Annotated[float, Field(ge=1, le=16)] = 4.0
    """Factor m of the bound's first term: m times PyTorch's own error in the row, in proportion to size."""
    tolerance_accumulate_multiple: Annotated[float, Field(ge=1, le=16)] = 2.0
    """Factor c of the bound's second term, `u_out |y| + c u_acc (sqrt(n) + 8) S`. Chosen: a kernel may err by twice
    the estimate for its own order of summation. A larger factor hides larger errors."""

    @model_validator(mode="after")
    def _measures_what_it_requires(self) -> Self:
        if self.required_contenders and "contenders" not in self.baselines:
            raise ValueError(
                "required_contenders names some, and baselines lacks 'contenders': expected both or none"
            )
        return self

    @property
    def calm_within(self) -> float:
        """Return the standard error of the control up to which more rounds of a pair add nothing.

        It is 2 %, or 40 % of `control_half_width` if the policy allows more noise than usual.
        """
        return max(CALM, CALM_SHARE * self.control_half_width)


def new_policy() -> Policy:
    """Return the policy of a workspace whose `policy.toml` says nothing."""
    return Policy(regimes=("cold", "resident"), candidate_limit_s=1200.0)
