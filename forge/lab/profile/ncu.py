"""Runs Nsight Compute's command line: chooses counters, and reads its CSV.

Format: NVIDIA, Nsight Compute CLI, "--page raw --csv": a row of names, a row of units, a row for each launch. Metric
names: "Metrics Reference" of the same manual. Clocks aren't changed (`--clock-control none`).
"""

import csv
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from forge.domain.profile import KernelProfile
from forge.errors import EnvironmentUnfit
from forge.lab.device.toolkit import PROGRAMS
from forge.sandbox.launch import Bind

STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
STALL_REASONS = (
    *("barrier", "branch_resolve", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard"),
    *("math_pipe_throttle", "membar", "mio_throttle", "no_instruction", "not_selected", "short_scoreboard"),
    *("sleeping", "tex_throttle", "wait"),
)
ISSUED = frozenset({"selected", "not_selected"})
"""Names in the stall metrics that are no stalls: the warp could issue."""
NAMES = {
    "duration_ns": "gpu__time_duration.sum",
    "dram_percent": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "compute_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "achieved_occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "theoretical_occupancy_percent": "sm__maximum_warps_per_active_cycle_pct",
    "waves": "launch__waves_per_multiprocessor",
    "registers_per_thread": "launch__registers_per_thread",
    "static_shared_bytes": "launch__shared_mem_per_block_static",
    "dynamic_shared_bytes": "launch__shared_mem_per_block_dynamic",
}
SUMS = {
    "dram_bytes": ("dram__bytes_read.sum", "dram__bytes_write.sum"),
    "local_bytes": ("l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum"),
}
WHOLE = ("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "dram_bytes", "local_bytes")
"""Fields of a profile that are whole numbers."""
METRICS = (
    *NAMES.values(),
    *(name for pair in SUMS.values() for name in pair),
    *(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in STALL_REASONS),
)
SCALES = {"us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
SCALES |= {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Kbyte/block": 1e3}
"""Factors from units to nanoseconds and bytes; numbers in any other unit stay as they are."""
LAUNCHES = 64
"""Number of launches that are profiled, at most. Chosen; the profiler replays each launch many times."""
_HOMES = ("/opt/nvidia/nsight-compute",)
"""Folders in which NVIDIA's packages install the profiler."""
_FALLBACK = (
    "forge profile RUN --tool torch gives the time by kernel, --tool cuobjdump the machine code, without counters"
)
"""Next step where counters can't be read."""
_NO_NUMBER = frozenset({"", "n/a", "no data", "nan", "inf", "-nan"})
"""Texts of the profiler for a counter without a value."""


@cache
def _found() -> str | None:
    """Return the path of ncu. Some toolkits have only a script of that name that reports its absence."""
    places = (shutil.which("ncu"), shutil.which("ncu", path=PROGRAMS))
    return next((place for place in places if place and "Command Line Profiler" in _version(place)), None)


def _version(place: str) -> str:
    try:
        return subprocess.run([place, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def is_installed() -> bool:
    """Return whether ncu is installed; whether it may read counters shows only when it runs."""
    return _found() is not None


def program() -> str:
    """Return the path of ncu; raise EnvironmentUnfit if it isn't installed."""
    found = _found()
    if found is None:
        raise EnvironmentUnfit("ncu (Nsight Compute) isn't on the path: expected it for counters", hint=_FALLBACK)
    return str(Path(found).resolve())


def places() -> tuple[Bind, ...]:
    """Return binds of the tool's folder, if guests don't see it anyway: the toolkit's `ncu` only points there."""
    return tuple(Bind(Path(place), place) for place in _HOMES if Path(place).is_dir())


def wrapper(kernels: Iterable[str]) -> tuple[str, ...]:
    """Return the command in front of a program that profiles launches of these kernels and reports them on stdout."""
    named = "|".join(re.escape(name) for name in sorted(kernels))
    settings = ("--clock-control", "none", "--cache-control", "none", "--launch-count", str(LAUNCHES))
    return (
        *(program(), "--target-processes", "all", "--csv", "--page", "raw", "--print-units", "base"),
        *settings,
        *("--kernel-name-base", "mangled", "--print-kernel-base", "mangled", "--kernel-name", f"regex:^({named})$"),
        *("--metrics", ",".join(METRICS)),
    )


def parse(untrusted_output: str) -> tuple[KernelProfile, ...]:
    """Read the output of ncu and of the program under it.

    Raise EnvironmentUnfit with the reason if it has no counters.
    """
    lines = untrusted_output.splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        raise _without_counters(untrusted_output)
    header, units, *rows = csv.reader(_table(lines[start:]))
    by_name = dict(zip(header, units, strict=False))
    try:
        return tuple(_profile(dict(zip(header, row, strict=True)), by_name) for row in rows)
    except ValueError as error:
        raise EnvironmentUnfit(f"ncu's table can't be read: {str(error)[:300]}", hint=_FALLBACK) from error


def _table(lines: list[str]) -> Iterator[str]:
    """Yield the rows, without what the program printed between them."""
    return (line for line in lines if line.startswith('"'))


def _without_counters(said: str) -> EnvironmentUnfit:
    if "ERR_NVGPUCTRPERM" in said:
        return EnvironmentUnfit(
            "ncu may not read this GPU's counters (ERR_NVGPUCTRPERM): expected a user who may",
            hint=f"an administrator sets NVreg_RestrictProfilingToAdminUsers=0; {_FALLBACK}",
        )
    if "No kernels were profiled" in said:
        return EnvironmentUnfit("ncu saw no kernel: expected at least one launch", hint=_FALLBACK)
    errors = [line for line in said.splitlines() if line.startswith("==ERROR==")]
    last_line = errors[0] if errors else (said.strip().splitlines() or ["nothing"])[-1]
    return EnvironmentUnfit(f"ncu gave no table; it said: {last_line[:300]!r}", hint=_FALLBACK)


def _profile(row: Mapping[str, str], units: Mapping[str, str]) -> KernelProfile:
    read = {name: value for name in row if (value := _number(row[name], units.get(name, ""))) is not None}
    fields: dict[str, float | None] = {field: read.get(metric) for field, metric in NAMES.items()}
    for field, parts in SUMS.items():
        found = [read[part] for part in parts if part in read]
        fields[field] = sum(found) if found else None
    stalls = {match[1]: read[name] for name in read if (match := STALL.fullmatch(name)) and match[1] not in ISSUED}
    whole = {name: None if (value := fields.pop(name)) is None else round(value) for name in WHOLE}
    return KernelProfile.model_validate(
        {
            **fields,
            **whole,
            "name": row.get("Kernel Name", ""),
            "grid": _extent(row.get("Grid Size", "")),
            "block": _extent(row.get("Block Size", "")),
            "stalls": dict(sorted(stalls.items(), key=lambda item: -item[1])),
        }
    )


def _number(text: str, unit: str) -> float | None:
    """Return a number with thousands separators in nanoseconds, bytes or its own unit; None for anything else."""
    if text.strip().lower() in _NO_NUMBER:
        return None
    try:
        return float(text.replace(",", "")) * SCALES.get(unit, 1.0)
    except ValueError:
        return None


def _extent(text: str) -> list[int]:
    """Return the numbers in a text such as `(256, 1, 1)`."""
    return [int(number) for number in re.findall(r"\d+", text)]
