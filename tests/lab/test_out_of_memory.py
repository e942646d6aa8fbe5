"""A candidate that finds too little of a GPU's memory isn't refused for it."""

import sys
from types import SimpleNamespace

import pytest

from forge.domain.device import Device
from forge.domain.verdict import Accepted, Reason, Rejected
from forge.errors import EnvironmentUnfit
from forge.lab.device.out_of_memory import lacks_memory, require_room

DEVICE = Device(index=0, uuid="GPU-aaaa1111-0000-0000-0000-000000000000", node="/dev/nvidia0")
TOTAL = 80 * 2**30


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand in for the driver of a GPU that isn't here."""
    memory = SimpleNamespace(used=0, total=TOTAL)
    monkeypatch.setitem(
        sys.modules,
        "pynvml",
        SimpleNamespace(
            NVMLError=OSError,
            nvmlInit=lambda: None,
            nvmlShutdown=lambda: None,
            nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
            nvmlDeviceGetMemoryInfo=lambda _: memory,
        ),
    )
    return memory


def test_memory_that_another_program_holds_leaves_no_verdict(driver: SimpleNamespace) -> None:
    driver.used = TOTAL // 2
    with pytest.raises(EnvironmentUnfit, match=r"40\.0 of 80\.0 GiB .* in use"):
        require_room(DEVICE)


def test_a_refusal_stands_where_the_memory_was_free(driver: SimpleNamespace) -> None:
    driver.used = 2**30
    require_room(DEVICE)


@pytest.mark.parametrize("code", ["OUT_OF_MEMORY", "RUNTIME_ERROR"])
def test_a_refusal_for_lack_of_memory_is_asked_again(code: str) -> None:
    reason = Reason.model_validate({"code": code, "message": "the call ran out of memory"})
    assert lacks_memory(Rejected(reason=reason)) == (code == "OUT_OF_MEMORY")
    assert not lacks_memory(Accepted())
