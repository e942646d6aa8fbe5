"""Which GPU is meant, and what its driver says: on text as nvidia-smi and NVML give it; no GPU is needed."""

from pathlib import Path

import pytest

from forge.domain.device import Device, DeviceState, shared, throttled
from forge.domain.evidence import Isolation
from forge.errors import UnknownName
from forge.languages import LANGUAGES
from forge.platforms.cuda import choose, minors_of, parse_devices
from forge.platforms.nvml import decode_slowdown, host_processor_s, sample
from forge.sandbox import stage

LISTING = "0, GPU-aaaa1111-0000-0000-0000-000000000000\n1, GPU-aaaa2222-0000-0000-0000-000000000000\n"
DOCUMENT = """
<gpu id="00000000:18:00.0">
\t\t<minor_number>5</minor_number>
\t\t<uuid>GPU-aaaa1111-0000-0000-0000-000000000000</uuid>
</gpu>
<gpu id="00000000:2A:00.0">
\t\t<uuid>GPU-aaaa2222-0000-0000-0000-000000000000</uuid>
\t\t<minor_number>2</minor_number>
</gpu>
"""
TWO = parse_devices(LISTING, minors_of(DOCUMENT))


def state(**changes: object) -> DeviceState:
    calm: dict[str, object] = {
        "sm_clock_mhz": 1980.0,
        "memory_clock_mhz": 3201.0,
        "power_w": 120.0,
        "temperature_c": 35.0,
        "slowdown": (),
        "utilisation": 0.0,
        "compute_pids": (),
        "memory_used_bytes": 0,
        "host_load": 0.5,
        "host_busy_s": 100.0,
        "host_stolen_s": 1.0,
    }
    return DeviceState.model_validate(calm | changes)


def test_a_devices_file_is_named_by_its_minor_number_and_not_by_its_index() -> None:
    assert [device.node for device in TWO] == ["/dev/nvidia5", "/dev/nvidia2"]
    assert [device.node for device in parse_devices(LISTING, {})] == ["/dev/nvidia0", "/dev/nvidia1"]


@pytest.mark.parametrize(
    ("name", "index"),
    [(None, 0), ("0", 0), ("1", 1), ("1,0", 1), ("GPU-aaaa2", 1), ("GPU-aaaa1111-0000-0000-0000-000000000000", 0)],
)
def test_a_gpu_is_chosen_by_index_or_by_the_beginning_of_its_uuid(name: str | None, index: int) -> None:
    assert choose(TWO, name) == TWO[index]


@pytest.mark.parametrize("name", ["2", "GPU-", "GPU-aaaa", "GPU-bbbb", "nonsense", "01", "aaaa1111"])
def test_a_name_that_fits_no_gpu_or_several_is_refused(name: str) -> None:
    with pytest.raises(UnknownName, match="unknown GPU"):
        choose(TWO, name)


@pytest.mark.parametrize("name", ["", "-1", "NoDevFiles"])
def test_a_process_that_hides_every_gpu_has_none(name: str) -> None:
    assert choose(TWO, name) is None
    assert choose((), "0") is None


def test_every_bit_of_the_slowdown_mask_has_its_name_and_new_ones_are_unknown() -> None:
    assert decode_slowdown(0) == ()
    assert decode_slowdown(0x1 | 0x4) == ("gpu_idle", "software_power_cap")
    assert decode_slowdown(0x8 | 0x40 | 0x80) == ("hardware_slowdown", "hardware_thermal", "hardware_power_brake")
    assert decode_slowdown(1 << 20) == ("unknown",)


def test_heat_throttles_and_the_cards_own_settings_do_not() -> None:
    capped = state(slowdown=("gpu_idle", "software_power_cap"))
    assert throttled(state(), capped) == ()
    assert throttled(state(slowdown=("hardware_thermal",)), capped) == ("hardware_thermal",)
    assert throttled(capped, state(slowdown=("unknown",))) == ("unknown",)


def test_a_process_that_is_not_ours_at_either_moment_means_a_shared_device() -> None:
    assert shared(state(compute_pids=(7,)), state(compute_pids=(7, 9)), {7}) == (9,)
    assert shared(state(compute_pids=(8,)), state(), set()) == (8,)
    assert shared(state(compute_pids=(7,)), state(), {7}) == ()


def test_stolen_ticks_are_the_eighth_of_proc_stat() -> None:
    total_s, stolen_s = host_processor_s("cpu  100 0 100 700 0 0 0 100 50 0\ncpu0 1 2 3\n")
    assert stolen_s / total_s == pytest.approx(0.1)
    assert host_processor_s("") == (0, 0)


def test_a_machine_without_the_driver_has_no_state_and_raises_nothing() -> None:
    assert sample(Device(index=0, uuid="GPU-there-is-none", node="/dev/nvidia0")) is None


def test_a_guest_gets_the_files_of_its_own_gpu_and_those_that_all_share(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = tuple(Path("/dev") / name for name in ("nvidia2", "nvidia5", "nvidiactl", "nvidia-uvm"))
    monkeypatch.setattr(stage, "GPU_NODES", nodes)  # a machine with two GPUs, which isn't here
    assert [node.name for node in stage.nodes_of(TWO[1])] == ["nvidia2", "nvidiactl", "nvidia-uvm"]
    assert stage.nodes_of(None) == nodes
    assert stage.nodes_of(TWO[0].model_copy(update={"node": "/dev/nvidia9"})) == nodes, "named otherwise here"


def test_a_guest_sees_no_other_gpu_in_its_environment() -> None:
    program = stage.Program(language=LANGUAGES["torch"], files={}, device="cuda", gpu=TWO[1])
    made = stage.Stage(program, Isolation(level="none", parts=(), missing=()))
    try:
        assert made._environment(1)["CUDA_VISIBLE_DEVICES"] == TWO[1].uuid
    finally:
        made.remove()
