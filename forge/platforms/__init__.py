"""Platforms and processors: what can run where, one file per platform.

To add a platform: its file and its line in `PLATFORMS`.
"""

from forge.platforms.cpu import CPU
from forge.platforms.cuda import CUDA
from forge.platforms.gpus import PROCESSORS, Processor, find_target
from forge.platforms.platform import Platform

PLATFORMS: dict[str, Platform] = {platform.name: platform for platform in (CPU, CUDA)}

__all__ = ["PLATFORMS", "PROCESSORS", "Platform", "Processor", "find_target"]
