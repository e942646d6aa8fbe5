"""The machines on which evidence was gathered."""

from forge.domain.device import Ceilings
from forge.domain.digest import Digest
from forge.domain.environment import Environment
from forge.events.fact import Fact


class EnvironmentCaptured(Fact):
    """A machine was described. Later events name it by `env_sha256`."""

    environment: Environment
    env_sha256: Digest
    perf_key: Digest
    abi_key: Digest


class DeviceCalibrated(Fact):
    """A processor's ceilings were measured. Floors of times on that machine are computed from the newest ones."""

    env_sha256: Digest
    perf_key: Digest
    ceilings: Ceilings
