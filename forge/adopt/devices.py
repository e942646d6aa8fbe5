"""Names devices as the registry does. A device without a name there has no promoted kernels."""

from forge.lookup.question import slug

ALIASES = {
    "h100sxm": "h100",
    "h100sxm5": "h100",
    "h10080gbhbm3": "h100",
    "h100pcie80gb": "h100pcie",
    "h100nvl94gb": "h100nvl",
    "gh20096gb": "gh200",
    "gh200480gb": "gh200",
    "a10080gb": "a100",
    "a10080gbsxm": "a100",
    "a100sxm480gb": "a100",
    "a10040gbsxm": "a10040gb",
    "a100sxm440gb": "a10040gb",
    "geforcertx4070": "rtx4070",
    "geforcertx4090": "rtx4090",
    "geforcertx5090": "rtx5090",
    "rtx6000adageneration": "rtx6000ada",
}
"""Drivers' names of GPUs -> the registry's. A test compares them with the table of processors."""


def gpu_name(driver_name: str) -> str:
    """Return the registry's name of a GPU from the driver's."""
    plain = slug(driver_name)
    return ALIASES.get(plain, plain)
