"""Says when two measurements of a kernel are independent, and what their comparison holds.

Two measurements are independent if other processes took them, on another machine or at least an hour apart. The
hour is by the ledger's times of the two events, which no author can write.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Digest, Value, is_unset
from forge.domain.environment import Environment
from forge.domain.evidence import Interval
from forge.domain.machine_name import MachineName, is_same_machine
from forge.domain.policy import BaselineKind, Regime

Outcome = Literal["held", "contradicted", "inconclusive"]
"""Result of a replication: it holds, it contradicts the first measurement, or it allows no verdict."""
LEAST_APART = timedelta(hours=1)
"""Time between two measurements on one machine. Clocks, temperature and other load change within an hour."""


@dataclass(frozen=True)
class Occasion:
    """When, where and by which process something was measured."""

    recorded_at: datetime
    """Time of the event in the ledger; before a measurement is recorded, the time now."""
    environment: Environment
    process_sha256: Digest | None
    """Digest that names the process tree. None: an event that is older than the field."""


def same_machine(first: Environment, second: Environment) -> bool:
    """Return True for one GPU, or for one host if there is no GPU or its UUID isn't known."""
    then, now = (MachineName(one.gpu.uuid if one.gpu else None, one.host_sha256) for one in (first, second))
    return is_same_machine(then, now)


def why_not_independent(first: Occasion, second: Occasion) -> str | None:
    """Return why a second measurement is no replication of the first; None if it is one."""
    if first.process_sha256 is not None and first.process_sha256 == second.process_sha256:
        return "the same process took both measurements, expected another process"
    apart = second.recorded_at - first.recorded_at
    if not same_machine(first.environment, second.environment) or apart >= LEAST_APART:
        return None
    return (
        f"the second measurement is {apart.total_seconds() / 60:.0f} minutes after the first on the same machine, "
        f"expected at least {LEAST_APART.total_seconds() / 60:.0f}, or another machine"
    )


def why_not_comparable(first: Environment, second: Environment) -> str | None:
    """Return why times on the second machine say nothing about those on the first; None if they can be compared."""
    names = ("cpu_model", "torch", "triton", "compiler") if first.gpu is None else ("torch", "triton")
    facts = {name: (getattr(first, name), getattr(second, name)) for name in names}
    if first.gpu is not None:
        facts = {"GPU": (first.gpu.slug, second.gpu.slug if second.gpu else None), **facts}
    for name, (wanted, found) in facts.items():
        if wanted != found:
            return f"{name} is {found!r} here, and the first measurement had {wanted!r}"
    return None


class ReplicatedSpeedup(Value):
    """The first and the second measurement of one regime, over one baseline."""

    regime: Regime
    baseline: BaselineKind
    first: Interval
    first_pairs: Annotated[int, Field(ge=2)]
    """Number of process pairs behind the first interval."""
    second: Interval
    second_pairs: Annotated[int, Field(ge=2)]
    session_spread: Annotated[float, Field(gt=0)]
    """Relative difference between sessions that was allowed on top of the two intervals, 0.02 for 2 %."""
    replications: Annotated[int, Field(ge=0)]
    """Number of earlier replications that the allowed difference was estimated from. 0: it wasn't estimated."""
    kernel_ratio: Annotated[float, Field(gt=0)] | None = Field(default=None, exclude_if=is_unset)
    """Kernel's own median time in the second measurement over that in the first. None: it wasn't compared."""
