"""Reads `policy.toml` of the workspace, over the defaults that ship with Forge."""

import tomllib
from pathlib import Path

import orjson
from pydantic import ValidationError

from forge.app.stored.policy_stamp import POLICY_FILE, POLICY_LIMIT_BYTES
from forge.app.user.user_paths import read_regular
from forge.domain.misfit import misfit
from forge.domain.policy import CONTROL_KIND, Policy, new_policy
from forge.errors import UsageError


def load_policy(home: Path) -> Policy:
    """Return the workspace's policy; raise UsageError that names the wrong field."""
    path = home / POLICY_FILE
    if path.is_symlink() and not path.exists():
        raise UsageError(
            f"{str(path)!r} is a link to {str(path.readlink())!r}, which isn't there: expected a policy file, or no "
            "link, for the default policy",
            hint=_mend(path),
        )
    if not path.exists():
        return new_policy()
    try:
        document = tomllib.loads(read_regular(path, limit_bytes=POLICY_LIMIT_BYTES).decode())
    except (OSError, ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise UsageError(f"{str(path)!r} can't be read as TOML: {error}", hint=_mend(path)) from error
    try:
        stated = Policy.model_validate(_as_fields(document), strict=True)
    except ValidationError as error:
        said = f"{str(path)!r}: {misfit(error, Policy)}; docs/reference/policy.md lists every field's range"
        raise UsageError(said, hint=_mend(path)) from error
    policy = new_policy().model_copy(update={name: getattr(stated, name) for name in stated.model_fields_set})
    if CONTROL_KIND not in policy.baselines:
        raise UsageError(
            f"{str(path)!r}: baselines: got {list(policy.baselines)}, expected {CONTROL_KIND!r} among them: what is "
            "measured against itself, without which there is no verdict; docs/reference/policy.md lists the ranges",
            hint=_mend(path),
        )
    if "cold" not in policy.regimes:
        raise UsageError(
            f"{str(path)!r}: regimes: got {list(policy.regimes)}, expected 'cold' among them, by which a registry "
            "ranks; docs/reference/policy.md lists every field's range",
            hint=_mend(path),
        )
    return policy


def _mend(path: Path) -> str:
    return f"correct {str(path)!r} or move it away, then give the command again"


def _as_fields(document: dict[str, object]) -> dict[str, object]:
    """Convert TOML's lists to the tuples of the fields; any other value must have the field's own type."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in document.items()}


def recorded_policy(content: bytes) -> Policy:
    """Return a policy that an event names, by its stored bytes; one older than regimes asks for the cold one."""
    return Policy.model_validate({"regimes": ("cold",), **orjson.loads(content)})
