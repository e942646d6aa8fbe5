"""Processors that a task or a plan can name, with the figures that their vendors publish.

Peak bandwidths and rates are data-sheet figures, used in prompts and estimates. A floor is always computed from
measurements on the machine itself.
"""

from forge.domain.target import Target, gpu_slug
from forge.errors import UnknownName, near_names
from forge.platforms.gpu_table import GPUS
from forge.platforms.processor import Processor

CPU_PROCESSOR = Processor(
    slug="cpu",
    name="this machine's processor",
    platform="cpu",
    market="cpu",
    arch="host",
    source="no data sheet is used: floors are measured on the machine itself",
)
PROCESSORS: dict[str, Processor] = {processor.slug: processor for processor in (CPU_PROCESSOR, *GPUS)}
_BY_NAME = {name: one for one in PROCESSORS.values() for name in (one.slug, *one.aliases)}


def find_processor(untrusted_name: str) -> Processor:
    """Return the processor with exactly this name ("H200", "A100 80GB"), or raise UnknownName with the nearest."""
    name = gpu_slug(untrusted_name)
    processor = _BY_NAME.get(name) or _BY_NAME.get(name.removeprefix("nvidia"))
    if processor is None:
        near = dict.fromkeys(_BY_NAME[one].slug for one in near_names(name, _BY_NAME))
        raise UnknownName("gpu", untrusted_name, list(PROCESSORS), near=tuple(near))
    return processor


def slug_of(driver_name: str) -> str:
    """Return the slug for a driver's name of a GPU; its letters and digits if the table lacks it."""
    plain = gpu_slug(driver_name.removeprefix("NVIDIA").removeprefix(" GeForce"))
    return _BY_NAME[plain].slug if plain in _BY_NAME else plain


def find_target(untrusted_name: str) -> Target:
    """Return the target with this processor's name, or raise UnknownName. Forge may not run on that target."""
    processor = find_processor(untrusted_name)
    return Target(platform=processor.platform, gpu=processor.slug)
