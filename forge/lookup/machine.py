"""Describes what a built kernel depends on here: the facts behind `abi_key`. Standard library only.

`forge.platforms.capture` records an environment with the same functions, so that a recorded key and this machine's
are made of the same facts. Modules are imported where they are used: most readers never ask for the key.
"""

import os

FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "fma", "f16c", "asimd", "sve", "bf16")
"""Instruction sets that decide whether compiled code can run. The other processor flags are left out."""
HIDES_ALL = frozenset({"", "-1", "NoDevFiles", "void", "none"})
"""Values of CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES that hide all GPUs from a process."""


def abi_key() -> str:
    """Return the digest that `Registry.load(..., abi_key=)` compares with that of a built kernel's machine.

    The GPU is the first that CUDA_VISIBLE_DEVICES names, as in the commands of Forge. Takes up to a second beside a
    GPU, because its driver and compiler are asked: keep the answer.
    """
    import hashlib
    import json
    import platform

    arch = _visible_arch()
    facts = {
        "arch": arch,
        "cpu_features": cpu_features(),
        "cuda": cuda_version() if arch else None,
        "glibc": platform.libc_ver()[1] or None,
        "machine": platform.machine(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "system": platform.system(),
        "torch": installed_version("torch"),
    }
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def cpu_features() -> tuple[str, ...]:
    """Return those of FEATURES that this processor has."""
    flags = set((cpu_field("flags") or cpu_field("Features") or "").split())
    return tuple(feature for feature in FEATURES if feature in flags)


def cpu_field(name: str) -> str | None:
    """Return the first value of a field of /proc/cpuinfo."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == name:
                    return value.strip()
    except OSError:
        pass
    return None


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed Python package; None if it isn't installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def cuda_version() -> str | None:
    """Return the CUDA compiler's version, as it reports it."""
    lines = answer_lines("nvcc", "--version")
    return lines[-1] if lines else None


def answer_lines(tool: str, *options: str) -> list[str]:
    """Return the lines that a tool prints, without empty ones; none if it isn't installed or fails."""
    import shutil
    import subprocess

    found = shutil.which(tool)
    if found is None:
        return []
    try:
        answer = subprocess.run([found, *options], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]


def _visible_arch() -> str | None:
    """Return the architecture of the first visible GPU, as sm_90; None if there is none."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    wanted = None if named is None else named.split(",")[0].strip()
    if wanted in HIDES_ALL:
        return None
    for line in answer_lines("nvidia-smi", "--query-gpu=index,uuid,compute_cap", "--format=csv,noheader"):
        index, uuid, capability = (field.strip() for field in line.split(","))
        if wanted is None or wanted == index or (wanted.startswith("GPU-") and uuid.startswith(wanted)):
            return f"sm_{capability.replace('.', '')}"
    return None
