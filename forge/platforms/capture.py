"""Describes the machine that evidence is gathered on, without importing torch."""

import hashlib
import os
import platform

from forge.domain.device import Device
from forge.domain.environment import Environment
from forge.lookup.machine import answer_lines, cpu_features, cpu_field, cuda_version, installed_version
from forge.platforms.cuda import gpu_facts
from forge.platforms.host_facts import file_text


def capture_environment(*, forge_version: str, forge_commit: str | None, device: Device | None) -> Environment:
    """Describe this machine now, with the chosen GPU if there is one."""
    gpu = gpu_facts(device.uuid) if device else None
    return Environment(
        cpu_model=cpu_field("model name") or platform.processor() or "unknown",
        cpu_cores=os.cpu_count() or 1,
        cpu_features=cpu_features(),
        system=platform.system(),
        machine=platform.machine(),
        kernel=platform.release(),
        glibc=platform.libc_ver()[1] or None,
        python=platform.python_version(),
        torch=installed_version("torch"),
        triton=installed_version("triton"),
        compiler=_first_line("g++", "--version"),
        gpu=gpu,
        driver=_first_line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") if gpu else None,
        cuda=cuda_version() if gpu else None,
        clock_policy=file_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not reported",
        forge_version=forge_version,
        forge_commit=forge_commit,
        host_sha256=hashlib.sha256(
            f"forge host {platform.node()} {file_text('/etc/machine-id')}".encode()
        ).hexdigest(),
    )


def _first_line(tool: str, *options: str) -> str | None:
    lines = answer_lines(tool, *options)
    return lines[0] if lines else None
