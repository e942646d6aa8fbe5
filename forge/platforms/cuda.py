"""NVIDIA GPUs: found by asking the driver's own tool, without importing torch."""

import shutil
import subprocess

from forge.domain.environment import GpuFacts
from forge.domain.target import gpu_slug
from forge.platforms.platform import Platform

_QUERY = "name,memory.total,power.limit,ecc.mode.current,mig.mode.current,uuid,compute_cap"


def _gpu() -> GpuFacts | None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    rows = [line for line in answer.stdout.splitlines() if line.strip()]
    if not rows:
        return None
    name, memory_mib, power_w, ecc, mig, uuid, capability = (field.strip() for field in rows[0].split(","))
    return GpuFacts(
        name=name,
        slug=gpu_slug(name.removeprefix("NVIDIA").removeprefix(" GeForce")),
        arch=f"sm_{capability.replace('.', '')}",
        count=len(rows),
        memory_bytes=int(float(memory_mib) * 2**20),
        power_limit_w=_number(power_w),
        ecc={"Enabled": True, "Disabled": False}.get(ecc),
        mig={"Enabled": True, "Disabled": False}.get(mig),
        uuid=uuid,
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


CUDA = Platform(name="cuda", summary="NVIDIA GPUs through CUDA", gpu=_gpu, available=lambda: _gpu() is not None)
