"""What a machine can do at most is recorded where there is a workspace, and read back from there."""

from pathlib import Path

import pytest

from forge.app.machine.ceilings import calibrated, latest_ceilings, required_ceilings
from forge.app.machine.chosen_executor import executor_of
from forge.app.workspace import Workspace
from forge.domain.device import PROTOCOL_VERSION
from forge.domain.digest import sha256
from forge.events import DeviceCalibrated
from tests.cli.asking import ask


def test_the_newest_ceilings_of_this_environment_and_protocol_count(empty: Path) -> None:
    with Workspace.open(empty) as workspace:
        executor = executor_of(workspace)
        environment = executor.site(workspace.policy).environment
        assert latest_ceilings(workspace, environment) is None
        first = required_ceilings(workspace, executor, environment)
        assert required_ceilings(workspace, executor, environment) == first, "measured once"
        second = calibrated(workspace, executor, environment)
        assert latest_ceilings(workspace, environment) == second
        for change in ({"protocol": PROTOCOL_VERSION + 1}, {"copy_bytes_per_s": 1.0}):
            elsewhere = {} if "protocol" in change else {"env_sha256": sha256(b"another machine")}
            event = DeviceCalibrated(
                env_sha256=elsewhere.get("env_sha256", environment.env_sha256),
                perf_key=environment.perf_key,
                ceilings=second.model_copy(update=change),
            )
            workspace.append((event,), run_id=event.stream(), key=f"test:{change}")
        assert latest_ceilings(workspace, environment) == second


def test_a_calibration_is_told_and_recorded(empty: Path) -> None:
    said = ask("doctor", "--calibrate", "--home", empty, "--json")
    assert said.status == 0
    with Workspace.open(empty, read_only=True) as workspace:
        (recorded,) = workspace.ledger.read(types=("DeviceCalibrated",))
    assert isinstance(recorded.event, DeviceCalibrated)
    assert said.document["recorded"] is True
    assert said.document["env_sha256"] == recorded.event.env_sha256
    assert said.document["ceilings"] == recorded.event.ceilings.model_dump(mode="json")


@pytest.mark.parametrize(
    "command",
    ["doctor", "verify last", "bench last", "pipeline last examples/honest_cpp", "profile last"],
)
def test_a_gpu_that_is_not_here_is_refused(empty: Path, command: str) -> None:
    said = ask(*command.split(), "--device", "97", "--home", empty)
    assert (said.status, said.out) == (2, "")
    assert "unknown GPU '97'" in said.err
