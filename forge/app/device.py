"""Which GPU is meant, by --device or CUDA_VISIBLE_DEVICES, and what it was seen to do, by the ledger.

One process works with one GPU: once chosen, it is the only one that CUDA shows to this process and its children.
"""

import os
from typing import TYPE_CHECKING

from forge import __version__
from forge.domain.device import PROTOCOL_VERSION, Ceilings, Device
from forge.domain.environment import Environment
from forge.errors import UnknownName
from forge.events import DeviceCalibrated
from forge.platforms.capture import capture_environment
from forge.platforms.cuda import choose, devices

if TYPE_CHECKING:
    from forge.app.workspace import Workspace

VARIABLE = "CUDA_VISIBLE_DEVICES"


def chosen_device(named: str | None = None) -> Device | None:
    """The GPU that is meant, by name or else by the environment; None where there is none. Raise UnknownName."""
    device = choose(devices(), named if named is not None else os.environ.get(VARIABLE))
    if named is not None and device is None:
        raise UnknownName("GPU", named, [one.uuid for one in devices()])
    if device is not None:
        os.environ[VARIABLE] = device.uuid
    return device


def measured_ceilings(device: Device | None) -> Ceilings:
    """Measure now: the GPU where there is one, else the processor. Raise EnvironmentUnfit."""
    from forge.executor.local import calibrate, require_lab

    require_lab()
    return calibrate(device)


def calibrated(workspace: "Workspace") -> tuple[Environment, Ceilings]:
    """Measure this machine's ceilings and record them."""
    device = chosen_device()
    environment = workspace.environment(run_id="calibration")
    ceilings = measured_ceilings(device)
    event = DeviceCalibrated(env_sha256=environment.env_sha256, perf_key=environment.perf_key, ceilings=ceilings)
    place = workspace.ledger.stream_version(event.stream())
    workspace.append((event,), run_id=event.stream(), key=f"calibrate:{environment.env_sha256}:{place}")
    return environment, ceilings


def latest_ceilings(workspace: "Workspace", environment: Environment) -> Ceilings | None:
    """The newest ceilings recorded for exactly this environment, of today's protocol; None if there are none."""
    newest = None
    for recorded in workspace.ledger.read(stream=f"env:{environment.env_sha256}", types=("DeviceCalibrated",)):
        if isinstance(recorded.event, DeviceCalibrated) and recorded.event.ceilings.protocol == PROTOCOL_VERSION:
            newest = recorded.event.ceilings
    return newest


def required_ceilings(workspace: "Workspace", environment: Environment) -> Ceilings:
    """The newest ceilings, measured and recorded now where there are none."""
    return latest_ceilings(workspace, environment) or calibrated(workspace)[1]


def calibrated_here() -> tuple[Environment, Ceilings]:
    """As `calibrated`, without a workspace: nothing is recorded."""
    device = chosen_device()
    environment = capture_environment(forge_version=__version__, forge_commit=None, device=device)
    return environment, measured_ceilings(device)
