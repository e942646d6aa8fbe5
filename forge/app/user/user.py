"""Names the person who asks, in the form in which events name an actor."""

import getpass
import os
import socket

USER_LIMIT = 100
"""Longest user name that is taken as it is, in characters; an event's actor holds 200."""


def command_line_actor() -> str:
    """Return the actor `cli:<user>@<host>` of the person at the command line."""
    return f"cli:{user_name()}@{socket.gethostname()}"


def user_name() -> str:
    """Return the user's name; the user's number if the system has no name that an event can hold."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
    plain = name.isprintable() and name == name.strip() and len(name) <= USER_LIMIT
    return name if plain else str(os.getuid())
