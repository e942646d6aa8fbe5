"""`policy.toml` in the workspace, over the defaults that ship with Forge."""

import tomllib
from pathlib import Path

from pydantic import ValidationError

from forge.domain.misfit import misfit
from forge.domain.policy import Policy
from forge.errors import UsageError

POLICY_FILE = "policy.toml"


def load_policy(home: Path) -> Policy:
    """The workspace's policy; raise UsageError that names the field if the file isn't one."""
    path = home / POLICY_FILE
    if not path.exists():
        return Policy()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise UsageError(f"{str(path)!r} can't be read as TOML: {error}") from error
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        raise UsageError(f"{str(path)!r}: {misfit(error, Policy)}; docs/reference/policy.md says of each") from error
