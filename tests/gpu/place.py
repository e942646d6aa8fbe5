"""The GPU that these tests use: the first that CUDA_VISIBLE_DEVICES names, as in every command of Forge."""

import os

from forge.domain.device import Device
from forge.platforms.cuda import choose, devices


def gpu() -> Device:
    """Return the GPU, and hide no other from this process: tests of two GPUs see both."""
    found = choose(devices(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    assert found is not None, "nothing here is collected without a GPU"
    return found
