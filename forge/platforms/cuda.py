"""NVIDIA GPUs, found with nvidia-smi and without importing torch."""

import re
from collections.abc import Mapping
from functools import cache

from forge.domain.device import Device
from forge.domain.environment import GpuFacts
from forge.errors import UnknownName
from forge.lookup.machine import HIDES_ALL, answer_lines
from forge.platforms.gpus import slug_of
from forge.platforms.platform import Platform

_QUERY = "name,memory.total,power.limit,ecc.mode.current,mig.mode.current,uuid,compute_cap"
"""Fields that nvidia-smi is asked for."""
_GPU = re.compile(r"<gpu id=.*?</gpu>", re.DOTALL)
_UUID = re.compile(r"<uuid>(GPU-[^<]+)</uuid>")
_MINOR = re.compile(r"<minor_number>(\d+)</minor_number>")


def gpu_facts(uuid: str | None = None) -> GpuFacts | None:
    """Return the driver's facts about one GPU, the first if `uuid` is None; None if there is no GPU."""
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
    """Return the GPUs of this machine in nvidia-smi's order. A process asks once."""
    listing = _ask("--query-gpu=index,uuid", "--format=csv,noheader")
    return parse_devices(listing, minors_of(_ask("-q", "-x"))) if listing else ()


def parse_devices(listing: str, minors: Mapping[str, int]) -> tuple[Device, ...]:
    """Parse nvidia-smi's `index, uuid` lines. If a minor number isn't known, the index is used."""
    rows = [[field.strip() for field in line.split(",")] for line in listing.splitlines() if "," in line]
    return tuple(
        Device(index=int(index), uuid=uuid, node=f"/dev/nvidia{minors.get(uuid, int(index))}") for index, uuid in rows
    )


def minors_of(document: str) -> dict[str, int]:
    """Return the minor number of the device file by UUID, from `nvidia-smi -q -x`."""
    found = ((_UUID.search(entry), _MINOR.search(entry)) for entry in _GPU.findall(document))
    return {uuid[1]: int(minor[1]) for uuid, minor in found if uuid and minor}


def choose(among: tuple[Device, ...], untrusted_name: str | None) -> Device | None:
    """Return the GPU with that index, UUID or unique beginning of a UUID; the first GPU if no name is given.

    For a list, as CUDA_VISIBLE_DEVICES holds, return its first. Return None if there is no GPU or all are hidden.
    Raise UnknownName if the named GPU doesn't exist.
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
    """Return nvidia-smi's output; empty if it isn't installed or fails."""
    return "\n".join(answer_lines("nvidia-smi", *options))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


CUDA = Platform(
    name="cuda", summary="NVIDIA GPUs through CUDA", gpu=gpu_facts, available=lambda: gpu_facts() is not None
)
