"""The processor that a kernel is for, and the slug that names it in identifiers."""

import re
from typing import Annotated

from pydantic import StringConstraints

from forge.domain.digest import Value

PlatformName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,31}$")]
"""Name of a platform. Each processor in `forge.platforms.PROCESSORS` has one. Candidates run only on those in
`forge.platforms.PLATFORMS`; others appear in plans."""
GpuSlug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,40}$")]


class Target(Value):
    """One processor model, for example `h200` on the platform `cuda`; `cpu` stands for the host's processor."""

    platform: PlatformName
    gpu: GpuSlug


def gpu_slug(untrusted_name: str) -> str:
    """Return the lower-case letters and digits of a processor's name: "RTX 4070" -> "rtx4070"."""
    return re.sub(r"[^a-z0-9]", "", untrusted_name.lower())
