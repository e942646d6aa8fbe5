"""Ends a screening if a contender that the policy requires isn't on this machine."""

from collections.abc import Iterable

from forge.contenders.discovery import ContenderCatalogue
from forge.domain.contender import ContenderStanding, is_required, missing
from forge.errors import EnvironmentUnfit

_NEXT_STEP = "take it out of required_contenders in policy.toml and make a new task"


def require_contenders(
    required: tuple[str, ...], catalogue: ContenderCatalogue, absent: Iterable[ContenderStanding]
) -> None:
    """Raise EnvironmentUnfit for a required contender that applies and isn't here, or that nothing describes."""
    for name in required:
        if not any(is_required(one.id, [name]) for one in catalogue.contenders):
            libraries = ", ".join(sorted({one.library.name for one in catalogue.contenders})) or "none"
            raise EnvironmentUnfit(
                f"the policy requires the contender {name!r}, which no description here names; "
                f"libraries with a description: {libraries}; {_NEXT_STEP}"
            )
    for contender, detail in missing(absent, required).items():
        raise EnvironmentUnfit(
            f"the policy requires the contender {contender!r}: {detail}; install it, or {_NEXT_STEP}"
        )
