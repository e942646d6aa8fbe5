"""Measurements take turns across processes, and a killed one gives its turn up."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forge.domain.device import Device
from forge.errors import EnvironmentUnfit
from forge.executor.turns import lock_of, turn

HOLDER = """
import sys, time
from pathlib import Path
from forge.executor.turns import turn
with turn(Path(sys.argv[1]), alone=sys.argv[2] == "alone", progress=print):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(lock: Path, kind: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", HOLDER, lock, kind], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def free(lock: Path, kind: int) -> bool:
    descriptor = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@pytest.mark.parametrize(("kind", "others_judge"), [("alone", False), ("beside", True)])
def test_a_measurement_excludes_all_and_judging_only_measurements(
    tmp_path: Path, kind: str, others_judge: bool
) -> None:
    lock = tmp_path / "gpu.lock"
    process = holder(lock, kind)
    assert not free(lock, fcntl.LOCK_EX)
    assert free(lock, fcntl.LOCK_SH) == others_judge
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert free(lock, fcntl.LOCK_EX)


def test_one_who_waits_says_so_and_goes_on_when_the_holder_dies(tmp_path: Path) -> None:
    lock, said = tmp_path / "gpu.lock", []

    def hear(step: str) -> None:
        said.append(step)
        process.kill()

    process = holder(lock, "alone")
    with turn(lock, alone=True, progress=hear):
        assert said == ["waiting for another job to end (gpu.lock)"]
    process.communicate()
    with turn(lock, alone=True, progress=hear):
        assert len(said) == 1


def test_a_lock_is_the_same_for_every_workspace_and_never_a_link(tmp_path: Path) -> None:
    device = Device(index=1, uuid="GPU-aaaa", node="/dev/nvidia1")
    assert lock_of(device) == lock_of(device.model_copy(update={"index": 0}))
    lock = lock_of(device, tmp_path)
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentUnfit, match="can't open the lock"), turn(lock, alone=True, progress=print):
        pass
