"""The machines on which evidence was gathered."""

from typing import ClassVar

from forge.domain.device import Ceilings
from forge.domain.digest import Digest
from forge.domain.environment import Environment
from forge.events.fact import Fact, Group


class EnvironmentCaptured(Fact):
    """A machine was described. Later events name it by `env_sha256`."""

    TYPE: ClassVar[str] = "EnvironmentCaptured"
    GROUP: ClassVar[Group] = "observed"
    environment: Environment
    env_sha256: Digest
    perf_key: Digest
    abi_key: Digest

    def stream(self) -> str:
        """Return the stream: one for each distinct environment."""
        return f"env:{self.env_sha256}"


class DeviceCalibrated(Fact):
    """A processor's ceilings were measured. Floors of times on that machine are computed from the newest ones."""

    TYPE: ClassVar[str] = "DeviceCalibrated"
    GROUP: ClassVar[Group] = "observed"
    env_sha256: Digest
    perf_key: Digest
    ceilings: Ceilings

    def stream(self) -> str:
        """Return the environment's stream."""
        return f"env:{self.env_sha256}"
