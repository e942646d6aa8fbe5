"""A machine's ceilings: read from the ledger, or measured now and recorded."""

from forge import __version__
from forge.app.chosen_device import chosen_device
from forge.app.workspace import Workspace
from forge.domain.device import PROTOCOL_VERSION, Ceilings, Device
from forge.domain.environment import Environment
from forge.events import DeviceCalibrated
from forge.platforms.capture import capture_environment


def measured_ceilings(device: Device | None) -> Ceilings:
    """Measure the ceilings now, of the GPU if there is one, otherwise of the processor. Raise EnvironmentUnfit."""
    from forge.executor.local import calibrate, require_lab

    require_lab()
    return calibrate(device)


def calibrated(workspace: Workspace) -> tuple[Environment, Ceilings]:
    """Measure this machine's ceilings and record them."""
    device = chosen_device()
    environment = workspace.environment(run_id="calibration")
    ceilings = measured_ceilings(device)
    event = DeviceCalibrated(env_sha256=environment.env_sha256, perf_key=environment.perf_key, ceilings=ceilings)
    place = workspace.ledger.stream_version(event.stream())
    workspace.append((event,), run_id=event.stream(), key=f"calibrate:{environment.env_sha256}:{place}")
    return environment, ceilings


def latest_ceilings(workspace: Workspace, environment: Environment) -> Ceilings | None:
    """The newest ceilings recorded for exactly this environment, of today's protocol; None if there are none."""
    newest = None
    for recorded in workspace.ledger.read(stream=f"env:{environment.env_sha256}", types=("DeviceCalibrated",)):
        if isinstance(recorded.event, DeviceCalibrated) and recorded.event.ceilings.protocol == PROTOCOL_VERSION:
            newest = recorded.event.ceilings
    return newest


def required_ceilings(workspace: Workspace, environment: Environment) -> Ceilings:
    """The newest ceilings, measured and recorded now where there are none."""
    return latest_ceilings(workspace, environment) or calibrated(workspace)[1]


def calibrated_here() -> tuple[Environment, Ceilings]:
    """As `calibrated`, without a workspace: nothing is recorded."""
    device = chosen_device()
    environment = capture_environment(forge_version=__version__, forge_commit=None, device=device)
    return environment, measured_ceilings(device)
