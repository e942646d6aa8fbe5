"""Who asks, as events name a person of this machine."""

import getpass
import os

USER_LIMIT = 100


def user_name() -> str:
    """The user's name, or number where the system has no name for it, or one that no event could hold."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
    plain = name.isprintable() and name == name.strip() and len(name) <= USER_LIMIT
    return name if plain else str(os.getuid())
