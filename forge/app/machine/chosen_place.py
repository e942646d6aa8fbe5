"""The place where a command's jobs run: this machine, or another one that is named by `--on` or FORGE_ON."""

import atexit
import os
from functools import cache

from forge.app.machine.chosen_device import PLACE_VARIABLE
from forge.executor.remote.executor import Connection, RemoteExecutor
from forge.executor.remote.ssh import SshConnection, ssh_command


def choose_place(address: str) -> None:
    """Let jobs run on the machine with this address; raise UsageError if it is no address."""
    _connection_to(address)
    os.environ[PLACE_VARIABLE] = address


def chosen_place() -> RemoteExecutor | None:
    """Return the executor of the chosen machine; None if jobs run on this one. Raise UsageError for a bad address."""
    address = os.environ.get(PLACE_VARIABLE, "")
    return _executor_at(address) if address else None


def place_name() -> str:
    """Return the chosen machine's address, or words for this one."""
    return os.environ.get(PLACE_VARIABLE) or "this machine"


@cache
def _executor_at(address: str) -> RemoteExecutor:
    connection = _connection_to(address)
    atexit.register(connection.close)
    return RemoteExecutor(connection)


def _connection_to(address: str) -> Connection:
    """Return a connection that isn't open yet; raise UsageError if the address is none."""
    if address.startswith("ray:"):
        from forge.executor.ray import RayConnection, parse_address

        return RayConnection(parse_address(address))
    return SshConnection(address, ssh_command(address))
