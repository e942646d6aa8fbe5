"""What tools print is read right.

`recorded/*.h200.*`: ncu 2025.3.1 on an H200 (driver 580.159), over small kernels each with one known fault; the
listings are cuobjdump's of CUDA 13.1 for sm_90. Other tables are made up, in the documented form.
"""

import csv
import io
from pathlib import Path

import pytest

from forge.domain.profile import KernelProfile
from forge.errors import EnvironmentUnfit
from forge.lab.profile import machine_code, ncu
from forge.lab.profile.bottleneck import diagnose

RECORDED = Path(__file__).parent / "recorded"
ATTRIBUTES = {"ID": "0", "Process Name": "python", "Kernel Name": "add_one", "Block Size": "(128, 1, 1)"}
READ = {
    ncu.NAMES["duration_ns"]: ("nsecond", "34,512"),
    ncu.NAMES["dram_percent"]: ("%", "81.25"),
    ncu.NAMES["compute_percent"]: ("%", "22.50"),
    ncu.NAMES["waves"]: ("", "3.10"),
    ncu.NAMES["l2_hit_percent"]: ("%", "n/a"),
    ncu.NAMES["registers_per_thread"]: ("register/thread", "18"),
    ncu.SUMS["dram_bytes"][0]: ("Mbyte", "134.25"),
    ncu.SUMS["dram_bytes"][1]: ("Mbyte", "0.75"),
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": ("inst", "0.5"),
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": ("inst", "12.5"),
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": ("inst", "99"),
}


def printed(**changes: str) -> str:
    """A table as the documentation shows it, within what else is printed."""
    names = [*ATTRIBUTES, "Grid Size", *READ]
    out = io.StringIO()
    rows = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    rows.writerow(names)
    rows.writerow([READ[name][0] if name in READ else "" for name in names])
    values = {**ATTRIBUTES, "Grid Size": "(65536, 1, 1)", **{name: value for name, (_, value) in READ.items()}}
    rows.writerow([(values | changes)[name] for name in names])
    return f'==PROF== Connected to process 12 (python)\n==PROF== Profiling "add_one" - 0: 1 pass\n{out.getvalue()}'


def test_a_row_becomes_a_profile_with_its_units_taken_out() -> None:
    (profile,) = ncu.parse(printed())
    assert (profile.name, profile.grid, profile.block) == ("add_one", (65536, 1, 1), (128, 1, 1))
    assert profile.duration_ns == 34512
    assert profile.dram_bytes == 135_000_000
    assert profile.l2_hit_percent is None
    assert profile.local_bytes is None
    assert list(profile.stalls) == ["long_scoreboard", "barrier"]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0", True),
        ("ERROR : nsight-compute directory is not found under /opt/nvidia.", False),
    ],
)
def test_a_toolkits_script_without_the_profiler_is_no_profiler(
    said: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ncu"
    program.write_text(f"#!/bin/sh\nprintf '%s' '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    ncu._found.cache_clear()
    try:
        assert ncu.is_installed() == found
    finally:
        ncu._found.cache_clear()


def recorded(name: str) -> dict[str, KernelProfile]:
    profiles = ncu.parse((RECORDED / name).read_text())
    return {one.name: one for one in reversed(profiles)}  # the first launch of each


@pytest.mark.parametrize(
    ("name", "bottleneck"),
    [("copy_vec", "memory"), ("copy_scalar", "latency"), ("compute", "compute"), ("spill", "memory")],
)
def test_what_was_wrong_with_a_kernel_on_the_device_is_found(name: str, bottleneck: str) -> None:
    assert diagnose(recorded("ncu_raw.h200.csv")[name]).bottleneck == bottleneck


def test_counters_of_the_device_agree_with_what_the_kernels_were_written_to_do() -> None:
    seen = recorded("ncu_raw.h200.csv")
    copied = 2 * 4 * 64 * 2**20
    assert seen["copy_vec"].dram_bytes == pytest.approx(copied, rel=0.01)
    assert copied / seen["copy_vec"].duration_ns < 4.8e12 / 1e9, "the data sheet's bandwidth"
    assert seen["barrier"].stalls["barrier"] == max(seen["barrier"].stalls.values())
    assert (seen["barrier"].static_shared_bytes, seen["barrier"].dynamic_shared_bytes) == (4096, 4096)
    assert (seen["spill"].local_bytes or 0) > 10**9
    assert seen["copy_vec"].local_bytes == 0
    assert (seen["copy_vec"].grid, seen["copy_vec"].block) == ((65536, 1, 1), (256, 1, 1))


def test_a_vendors_matrix_product_is_seen_as_compute() -> None:
    (product,) = (one for name, one in recorded("ncu_torch.h200.csv").items() if name.startswith("nvjet"))
    assert diagnose(product).bottleneck == "compute"
    assert (product.dynamic_shared_bytes or 0) > 200_000


def test_a_program_without_kernels_is_told_so() -> None:
    with pytest.raises(EnvironmentUnfit, match="saw no kernel"):
        ncu.parse((RECORDED / "ncu_no_kernel.h200.csv").read_text())


def test_a_table_with_a_row_cut_short_is_refused() -> None:
    with pytest.raises(EnvironmentUnfit, match="can't be read"):
        ncu.parse(printed() + '"1","python"\n')


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "may not read this GPU's counters"),
        ("==WARNING== No kernels were profiled.", "saw no kernel"),
        ("==ERROR== Failed to find metric no__such.sum", "Failed to find metric"),
        ("", "gave no table"),
    ],
)
def test_without_a_table_the_reason_and_the_fallback_are_told(said: str, why: str) -> None:
    with pytest.raises(EnvironmentUnfit, match=why) as raised:
        ncu.parse(said)
    assert "cuobjdump" in (raised.value.hint or "")


def kernel(**changes: object) -> KernelProfile:
    (profile,) = ncu.parse(printed())
    return KernelProfile.model_validate(profile.model_dump() | changes)


@pytest.mark.parametrize(
    ("changes", "bottleneck", "evidence"),
    [
        ({}, "memory", "dram_percent"),
        ({"compute_percent": 95.0}, "compute", "compute_percent"),
        ({"dram_percent": 10.0, "waves": 0.1, "duration_ns": 1500.0}, "launch", "waves"),
        ({"dram_percent": 10.0, "waves": 0.1, "duration_ns": 9e6}, "latency", "stalls.long_scoreboard"),
        ({"dram_percent": 10.0, "stalls": {"barrier": 9.0, "wait": 1.0}}, "sync", "stalls.barrier"),
        ({"dram_percent": None, "compute_percent": None, "stalls": {}}, "latency", "stalls.none"),
    ],
)
def test_a_bottleneck_names_the_counters_it_rests_on(
    changes: dict[str, object], bottleneck: str, evidence: str
) -> None:
    found = diagnose(kernel(**changes))
    assert found.bottleneck == bottleneck
    assert evidence in found.evidence


def facts(name: str):
    (found,) = machine_code.parse(
        (RECORDED / f"{name}.resources.txt").read_text(), (RECORDED / f"{name}.sass.txt").read_text()
    )
    return found


def test_wide_loads_and_warpgroup_products_are_seen_in_machine_code() -> None:
    assert (facts("add_one").registers, facts("add_one").widest_load_bits) == (18, 128)
    assert facts("add_one").matrix_instructions == 0
    product = facts("product")
    assert (product.warpgroup_instructions, product.widest_load_bits, product.barriers) == (4, 16, 3)


@pytest.mark.parametrize(
    ("instruction", "bits"),
    [("LDG.E.128", 128), ("LDG.E", 32), ("LDG.E.U16.CONSTANT", 16), ("LDG.E.64.STRONG.SYS", 64), ("LDG.E.S8", 8)],
)
def test_the_width_of_a_load_is_in_its_suffixes(instruction: str, bits: int) -> None:
    assert machine_code._bits(instruction) == bits


def test_predicated_spills_are_counted() -> None:
    sass = (
        "\n\t\tFunction : f\n        /*0010*/              @!P0 STL [R1], R2 ;\n        /*0020*/ LDL.64 R2, [R1] ;\n"
    )
    resources = " Function f:\n  REG:10 STACK:8 SHARED:0 LOCAL:0 CONSTANT[0]:540\n"
    (found,) = machine_code.parse(resources, sass)
    assert (found.local_stores, found.local_loads, found.stack_bytes) == (1, 1, 8)
