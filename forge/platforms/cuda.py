"""NVIDIA GPUs: found by asking the driver's own tool, without importing torch."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache

from forge.domain.device import Device
from forge.domain.environment import GpuFacts
from forge.errors import UnknownName
from forge.platforms.gpus import slug_of
from forge.platforms.platform import Platform

HIDES_ALL = frozenset({"", "-1", "NoDevFiles", "void", "none"})
"""Settings of CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES that leave a process without a GPU."""
_QUERY = "name,memory.total,power.limit,ecc.mode.current,mig.mode.current,uuid,compute_cap"
_GPU = re.compile(r"<gpu id=.*?</gpu>", re.DOTALL)
_UUID = re.compile(r"<uuid>(GPU-[^<]+)</uuid>")
_MINOR = re.compile(r"<minor_number>(\d+)</minor_number>")


def gpu_facts(uuid: str | None = None) -> GpuFacts | None:
    """What the driver says of one GPU, the first where none is named; None where there is none."""
    rows = [row for row in _ask(f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits").splitlines() if row.strip()]
    for row in rows:
        name, memory_mib, power_w, ecc, mig, found, capability = (field.strip() for field in row.split(","))
        if uuid is not None and found != uuid:
            continue
        return GpuFacts(
            name=name,
            slug=slug_of(name),
            arch=f"sm_{capability.replace('.', '')}",
            count=len(rows),
            memory_bytes=int(float(memory_mib) * 2**20),
            power_limit_w=_number(power_w),
            ecc={"Enabled": True, "Disabled": False}.get(ecc),
            mig={"Enabled": True, "Disabled": False}.get(mig),
            uuid=found,
        )
    return None


@cache
def devices() -> tuple[Device, ...]:
    """The GPUs of this machine, in nvidia-smi's order; asked once in a process."""
    listing = _ask("--query-gpu=index,uuid", "--format=csv,noheader")
    return parse_devices(listing, minors_of(_ask("-q", "-x"))) if listing else ()


def parse_devices(listing: str, minors: Mapping[str, int]) -> tuple[Device, ...]:
    """Read nvidia-smi's `index, uuid` lines; where no minor number is known, it is taken to be the index."""
    rows = [[field.strip() for field in line.split(",")] for line in listing.splitlines() if "," in line]
    return tuple(
        Device(index=int(index), uuid=uuid, node=f"/dev/nvidia{minors.get(uuid, int(index))}") for index, uuid in rows
    )


def minors_of(document: str) -> dict[str, int]:
    """UUID -> minor number of the device file, from `nvidia-smi -q -x`."""
    found = ((_UUID.search(entry), _MINOR.search(entry)) for entry in _GPU.findall(document))
    return {uuid[1]: int(minor[1]) for uuid, minor in found if uuid and minor}


def choose(among: tuple[Device, ...], untrusted_name: str | None) -> Device | None:
    """The GPU of that index or that UUID, or a unique beginning of it; the first where none is named.

    A list, as CUDA_VISIBLE_DEVICES holds, means its first. None where nothing is there, or all are hidden; raise
    UnknownName for one that isn't there.
    """
    name = None if untrusted_name is None else untrusted_name.split(",")[0].strip()
    if not among or name in HIDES_ALL:
        return None
    if name is None:
        return among[0]
    alike = [
        one for one in among if name == str(one.index) or (name.startswith("GPU-") and one.uuid.startswith(name))
    ]
    if len(alike) != 1:
        raise UnknownName("GPU", name, [f"{one.index} ({one.uuid})" for one in among])
    return alike[0]


def _ask(*options: str) -> str:
    """What nvidia-smi says; nothing where it isn't, or fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        return subprocess.run([tool, *options], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


CUDA = Platform(
    name="cuda", summary="NVIDIA GPUs through CUDA", gpu=gpu_facts, available=lambda: gpu_facts() is not None
)
