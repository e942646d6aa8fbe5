"""Describes the machine that evidence is gathered on, without importing torch."""

import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

from forge.domain.device import Device
from forge.domain.environment import Environment
from forge.platforms.cuda import gpu_facts

FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "fma", "f16c", "asimd", "sve", "bf16")
"""Instruction sets that decide whether compiled code can run. The other processor flags are left out."""


def capture_environment(*, forge_version: str, forge_commit: str | None, device: Device | None = None) -> Environment:
    """Describe this machine now, with the chosen GPU if there is one."""
    gpu = gpu_facts(device.uuid) if device else None
    flags = _cpu_flags()
    return Environment(
        cpu_model=_cpu_field("model name") or platform.processor() or "unknown",
        cpu_cores=os.cpu_count() or 1,
        cpu_features=tuple(feature for feature in FEATURES if feature in flags),
        system=platform.system(),
        machine=platform.machine(),
        kernel=platform.release(),
        glibc=platform.libc_ver()[1] or None,
        python=platform.python_version(),
        torch=_version("torch"),
        triton=_version("triton"),
        compiler=_first_line(["g++", "--version"]),
        gpu=gpu,
        driver=_first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]) if gpu else None,
        cuda=_first_line(["nvcc", "--version"], last=True) if gpu else None,
        clock_policy=_clock_policy(),
        forge_version=forge_version,
        forge_commit=forge_commit,
        host_sha256=hashlib.sha256(f"forge host {platform.node()} {_machine_id()}".encode()).hexdigest(),
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_field(name: str) -> str | None:
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _cpu_flags() -> set[str]:
    return set((_cpu_field("flags") or _cpu_field("Features") or "").split())


def _clock_policy() -> str:
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    return governor or "not reported"


def _machine_id() -> str:
    return _read("/etc/machine-id").strip()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _first_line(command: list[str], *, last: bool = False) -> str | None:
    tool = shutil.which(command[0])
    if tool is None:
        return None
    try:
        answer = subprocess.run([tool, *command[1:]], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [line.strip() for line in answer.stdout.splitlines() if line.strip()]
    return (lines[-1] if last else lines[0]) if lines else None
