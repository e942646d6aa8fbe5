"""The GPU that these tests use: the first that CUDA_VISIBLE_DEVICES names, as in every command of Forge."""

from forge.app.machine.chosen_device import chosen_device
from forge.domain.device import Device


def gpu() -> Device:
    """Return the GPU."""
    found = chosen_device()
    assert found is not None, "nothing here is collected without a GPU"
    return found
