"""What a platform must say about itself."""

from collections.abc import Callable
from dataclasses import dataclass

from forge.domain.environment import GpuFacts
from forge.domain.target import PlatformName


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A kind of processor and how to find out whether one is here."""

    name: PlatformName
    summary: str
    gpu: Callable[[], GpuFacts | None]
    """The GPU of this platform in this machine; None where there is none. Never raises."""
    available: Callable[[], bool]
    """Whether candidates for this platform can be timed here. Never raises."""
