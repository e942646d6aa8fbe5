"""Platforms and processors: what can run where, one file per platform.

To add a platform: its file and its line in `PLATFORMS`.
"""

from forge.platforms.claims import evidence_reach
from forge.platforms.cpu import CPU
from forge.platforms.cuda import CUDA
from forge.platforms.gpus import PROCESSORS, find_processor, find_target
from forge.platforms.platform import Platform
from forge.platforms.processor import Market, Processor, RateType

PLATFORMS: dict[str, Platform] = {platform.name: platform for platform in (CPU, CUDA)}

__all__ = [
    "PLATFORMS",
    "PROCESSORS",
    "Market",
    "Platform",
    "Processor",
    "RateType",
    "evidence_reach",
    "find_processor",
    "find_target",
]
