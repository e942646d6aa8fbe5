"""The machines on which evidence was gathered."""

from typing import ClassVar

from forge.domain.device import Ceilings
from forge.domain.digest import Digest
from forge.domain.environment import Environment
from forge.events.fact import Fact


class EnvironmentCaptured(Fact):
    """A machine was described. Later events name it by `env_sha256`."""

    TYPE: ClassVar[str] = "EnvironmentCaptured"
    environment: Environment
    env_sha256: Digest
    perf_key: Digest
    abi_key: Digest


class DeviceCalibrated(Fact):
    """A processor's ceilings were measured. Floors of times on that machine are computed from the newest ones."""

    TYPE: ClassVar[str] = "DeviceCalibrated"
    env_sha256: Digest
    perf_key: Digest
    ceilings: Ceilings
