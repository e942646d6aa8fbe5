"""Law: no time that measured rates allow is below the floor."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.device import Ceilings
from forge.lab.timing.roofline import cpu_ceilings, floor_ns

RECORDED = Path(__file__).parent / "recorded" / "ceilings.h200.json"
"""What calibration printed on an H200."""
H200 = Ceilings(
    copy_bytes_per_s=4.0e12,
    read_bytes_per_s=4.3e12,
    write_bytes_per_s=4.2e12,
    cached_bytes_per_s=8.0e12,
    flop_per_s={"bf16": 8e14, "fp32": 5e13, "tf32": 4e14},
    launch_ns=1200.0,
    cache_bytes=60 * 2**20,
    multiprocessors=132,
)
"""Round numbers of that size."""


def test_ceilings_of_the_device_are_below_its_data_sheet_and_above_honest_kernels() -> None:
    seen = Ceilings.model_validate_json(RECORDED.read_text())
    assert 0.85 * 4.8e12 < seen.memory_bytes_per_s < 4.8e12
    assert (seen.cached_bytes_per_s or 0) > seen.memory_bytes_per_s
    assert 0.6 * 989e12 < seen.flop_per_s["bf16"] < 989e12
    assert seen.flop_per_s["fp8"] > seen.flop_per_s["bf16"] > seen.flop_per_s["tf32"] > seen.flop_per_s["fp32"]
    fused_add_rmsnorm_ns = 34_800  # fp16 [4096, 4096], timed in a graph
    assert floor_ns(4 * 4096 * 4096 * 2, seen) < fused_add_rmsnorm_ns


def test_the_floor_is_the_slowest_of_moving_computing_and_launching() -> None:
    assert floor_ns(43 * 10**8, H200) == pytest.approx(1e6)
    assert floor_ns(1000, H200) == 1200.0
    assert floor_ns(1000, H200, flops=8e11, dtype="bf16") == pytest.approx(1e6)


def test_fp32_products_may_run_as_tf32_and_an_unmeasured_type_as_the_fastest() -> None:
    assert floor_ns(0, H200, flops=4e11, dtype="fp32") == pytest.approx(1e6)
    assert floor_ns(0, H200, flops=8e11, dtype="int8") == pytest.approx(1e6)
    assert floor_ns(0, H200, flops=8e11) == pytest.approx(1e6)


def test_without_products_measured_only_bytes_count() -> None:
    assert floor_ns(10**6, H200.model_copy(update={"flop_per_s": {}, "launch_ns": None}), flops=1e30) < 1e3


@given(
    moved=st.integers(1, 2**34),
    set_bytes=st.integers(1, 2**34),
    held=st.floats(0, 1),
)
def test_no_honest_use_of_the_cache_is_below_the_floor(moved: int, set_bytes: int, held: float) -> None:
    from_cache = min(1.0, held * H200.cache_bytes / set_bytes)  # type: ignore[operator]  # set above
    memory_ns = moved * (1 - from_cache) / H200.memory_bytes_per_s * 1e9
    cache_ns = moved / 8.0e12 * 1e9
    assert max(memory_ns, cache_ns, 1200.0) >= floor_ns(moved, H200, set_bytes=set_bytes) * (1 - 1e-9)
    assert floor_ns(moved, H200, set_bytes=set_bytes) <= floor_ns(moved, H200)


def test_a_cpus_floor_is_its_bytes_at_the_rate_of_its_own_caches() -> None:
    ceilings = cpu_ceilings(2)
    assert floor_ns(10**9, ceilings) == pytest.approx(1e18 / ceilings.copy_bytes_per_s)
