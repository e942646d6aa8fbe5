"""A machine's ceilings: read from the ledger, or measured now and recorded."""

from forge.app.workspace import Workspace
from forge.domain.device import PROTOCOL_VERSION, Ceilings
from forge.domain.environment import Environment
from forge.events import DeviceCalibrated
from forge.executor import Executor
from forge.pipeline.job import RecordedCandidate, on_gpu


def calibrated(workspace: Workspace, executor: Executor, environment: Environment) -> Ceilings:
    """Measure the ceilings of an executor's site now, and record them with the site's environment."""
    workspace.record_environment(environment, run_id="calibration")
    ceilings = executor.calibrate()
    event = DeviceCalibrated(env_sha256=environment.env_sha256, perf_key=environment.perf_key, ceilings=ceilings)
    place = workspace.ledger.stream_version(event.stream())
    workspace.append((event,), run_id=event.stream(), key=f"calibrate:{environment.env_sha256}:{place}")
    workspace.sign_decisions()
    return ceilings


def latest_ceilings(workspace: Workspace, environment: Environment) -> Ceilings | None:
    """Return the newest ceilings of exactly this environment and today's protocol; None if there are none."""
    newest = None
    for recorded in workspace.ledger.read(stream=f"env:{environment.env_sha256}", types=("DeviceCalibrated",)):
        if isinstance(recorded.event, DeviceCalibrated) and recorded.event.ceilings.protocol == PROTOCOL_VERSION:
            newest = recorded.event.ceilings
    return newest


def ceilings_of(workspace: Workspace, executor: Executor, evidence: RecordedCandidate) -> Ceilings | None:
    """Return the ceilings of the GPU that a candidate is timed on; None on a CPU."""
    return required_ceilings(workspace, executor, evidence.environment) if on_gpu(evidence) else None


def required_ceilings(workspace: Workspace, executor: Executor, environment: Environment) -> Ceilings:
    """Return the newest ceilings; if there are none, measure and record them now."""
    return latest_ceilings(workspace, environment) or calibrated(workspace, executor, environment)
