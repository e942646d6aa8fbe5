"""The machine on which what follows was observed."""

from typing import ClassVar

from forge.domain.device import Ceilings
from forge.domain.digest import Digest
from forge.domain.environment import Environment
from forge.events.fact import Fact


class EnvironmentCaptured(Fact):
    """A machine was described; later events name it by `env_sha256`."""

    TYPE: ClassVar[str] = "EnvironmentCaptured"
    environment: Environment
    env_sha256: Digest
    perf_key: Digest
    abi_key: Digest

    def stream(self) -> str:
        """One stream per distinct environment."""
        return f"env:{self.env_sha256}"


class DeviceCalibrated(Fact):
    """A processor's ceilings were measured: floors of times on that machine are computed from the newest."""

    TYPE: ClassVar[str] = "DeviceCalibrated"
    env_sha256: Digest
    perf_key: Digest
    ceilings: Ceilings

    def stream(self) -> str:
        """The environment's stream."""
        return f"env:{self.env_sha256}"
