"""Names what limits a kernel's speed, by rules over its counters; the first rule that applies decides.

From 60 % of its peak on, a resource counts as used, as in Nsight Compute's "Speed Of Light" rule (NVIDIA, Nsight
Compute Documentation, "Rules"). A grid below one wave can't fill the device.
"""

from forge.domain.profile import Bottleneck, Diagnosis, KernelProfile

BUSY_PERCENT = 60.0
"""Percentage of a peak from which on the resource counts as used (the rule of Nsight Compute's "Speed of Light"
section)."""
ONE_WAVE = 1.0
"""Number of waves below which a grid can't fill the device."""
SHORT_NS = 5_000.0
"""Duration in nanoseconds below which launching a kernel takes as long as its work. Chosen; a launch takes some
microseconds."""
SYNC_STALLS = frozenset({"barrier", "membar", "sleeping"})
"""Reasons for stalled warps that mean waiting for other threads."""


def diagnose(profile: KernelProfile) -> Diagnosis:
    """Name the bottleneck of one launch."""
    dram, compute = profile.dram_percent or 0.0, profile.compute_percent or 0.0
    read = {"dram_percent": dram, "compute_percent": compute}
    if max(dram, compute) >= BUSY_PERCENT:
        kind: Bottleneck = "memory" if dram >= compute else "compute"
        return Diagnosis(
            bottleneck=kind,
            rule=f"the busier of memory and arithmetic is at {BUSY_PERCENT:.0f} % or more",
            evidence=read,
        )
    waves = profile.waves
    if waves is not None and waves < ONE_WAVE and profile.duration_ns < SHORT_NS:
        small = {**read, "waves": waves, "duration_ns": profile.duration_ns}
        rule = f"nothing is busy, the grid is under one wave and over in {SHORT_NS / 1000:.0f} us"
        return Diagnosis(bottleneck="launch", rule=rule, evidence=small)
    reason, warps = max(profile.stalls.items(), key=lambda item: item[1], default=("none", 0.0))
    waiting = {**read, f"stalls.{reason}": warps}
    if reason in SYNC_STALLS:
        rule = "nothing is busy, and warps wait for other threads more than for anything else"
        return Diagnosis(bottleneck="sync", rule=rule, evidence=waiting)
    rule = f"nothing is busy, and warps wait most for {reason}: there is too little in flight to hide it"
    return Diagnosis(bottleneck="latency", rule=rule, evidence=waiting)
