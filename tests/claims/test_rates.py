"""Rates: what a calibration measured, or a data sheet says, and nothing else."""

from typing import Any

import pytest

from forge.claims import ClaimEvidence, gather
from forge.events.environment import DeviceCalibrated
from tests.claims.evidences import checked, problems
from tests.projections.histories import History
from tests.projections.values import captured, environment

CEILINGS: dict[str, Any] = {  # Any: what JSON holds
    "protocol": 1,
    "copy_bytes_per_s": 4.246e12,
    "read_bytes_per_s": 4.37e12,
    "write_bytes_per_s": 4.66e12,
    "cached_bytes_per_s": 7.21e12,
    "flop_per_s": {"bf16": 807.04e12},
    "launch_ns": 685.6,
    "cache_bytes": 62914560,
    "multiprocessors": 132,
}


@pytest.fixture
def found() -> ClaimEvidence:
    history = History()
    history.add(captured("h200"))
    keys = {name: getattr(environment("h200"), name) for name in ("env_sha256", "perf_key")}
    history.add(DeviceCalibrated.model_validate({**keys, "ceilings": CEILINGS}))
    return gather(history.events)


@pytest.mark.parametrize("said", ["4.25 TB/s", "4246 GB/s", "807 TFLOP/s", "807.0 TFLOPS"])
def test_a_calibrated_rate_may_be_said_with_its_event(said: str, found: ClaimEvidence) -> None:
    report = checked(f"One H200 read {said}, and 686 ns for a launch: event 2.", found)
    assert report.flagged == ()
    assert report.supported[0].rests_on == ("event 2, DeviceCalibrated",)


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ("One H200 read 4.26 TB/s: event 2.", "no_measure"),
        ("One H200 read 4.25 TB/s.", "no_measure"),
        ("One H200 makes 1 PFLOP/s: event 2.", "no_measure"),
        ("One H100 read 4.25 TB/s: event 2.", "wrong_processor"),
        ("It serves 4250 tokens/s: event 2.", "beyond_operation"),
    ],
)
def test_another_rate_may_not(sentence: str, problem: str, found: ClaimEvidence) -> None:
    assert problem in problems(sentence, found)


def test_a_data_sheets_rate_is_said_to_be_one() -> None:
    assert checked("By its data sheet an NVIDIA H200 reads 4800 GB/s.").flagged == ()
    assert problems("By its data sheet an NVIDIA H200 reads 4900 GB/s.") == {"no_measure"}
    assert problems("An NVIDIA H200 reads 4800 GB/s.") == {"no_measure"}
