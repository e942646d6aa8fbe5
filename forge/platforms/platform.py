"""The description of a platform."""

from collections.abc import Callable
from dataclasses import dataclass

from forge.domain.environment import GpuFacts
from forge.domain.target import PlatformName


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A kind of processor, with functions that find one in this machine."""

    name: PlatformName
    summary: str
    gpu: Callable[[], GpuFacts | None]
    """Function that returns this machine's GPU of this platform, or None. It never raises."""
    available: Callable[[], bool]
    """Function that returns True if candidates for this platform can be timed here. It never raises."""
