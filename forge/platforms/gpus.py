"""Processors a task or a plan can name, with what their vendors publish.

Peak bandwidths and rates are the vendors' data-sheet figures, for orientation in prompts and for estimates; a floor
is always computed from what was measured on the machine itself.
"""

import difflib

from forge.domain.target import Target, gpu_slug
from forge.errors import UnknownName
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
    """The processor called so ("H200", "RTX 4070", "A100 80GB"), exactly, or raise UnknownName with the nearest."""
    name = gpu_slug(untrusted_name)
    processor = _BY_NAME.get(name) or _BY_NAME.get(name.removeprefix("nvidia"))
    if processor is None:
        near = dict.fromkeys(_BY_NAME[one].slug for one in difflib.get_close_matches(name, _BY_NAME, n=5))
        raise UnknownName("gpu", untrusted_name, list(PROCESSORS), near=tuple(near)[:3])
    return processor


def slug_of(driver_name: str) -> str:
    """The slug of what a driver calls its GPU; where the table doesn't have it, its letters and digits."""
    plain = gpu_slug(driver_name.removeprefix("NVIDIA").removeprefix(" GeForce"))
    return _BY_NAME[plain].slug if plain in _BY_NAME else plain


def find_target(untrusted_name: str) -> Target:
    """The target that a processor's name means, or raise UnknownName; that Forge runs on it isn't said."""
    processor = find_processor(untrusted_name)
    return Target(platform=processor.platform, gpu=processor.slug)
