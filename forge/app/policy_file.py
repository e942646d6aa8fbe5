"""`policy.toml` in the workspace, over the defaults that ship with Forge."""

import tomllib
from pathlib import Path

from pydantic import ValidationError

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
        return Policy.model_validate(document)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{str(path)!r} can't be read as TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{str(path)!r}: {field} = {first['input']!r}: {first['msg']}; docs/reference/policy.md lists the fields"
        ) from error
