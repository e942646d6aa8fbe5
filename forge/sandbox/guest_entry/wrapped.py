"""Runs as PID 1 inside bubblewrap: `wrapped.py <channel> <peer> <the host's /proc> <orders>`, all descriptors.

The mounts already stand; `init` continues from there. It trusts bubblewrap as it trusts the kernel: both are the
machine's.
"""

import os
import socket
import sys

if not __package__:
    sys.path.append(os.path.realpath(__file__).rsplit("/", 4)[0])

from forge.sandbox.guest_entry import init
from forge.sandbox.guest_entry.plan import parse


def main() -> None:
    """Continue as PID 1."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    peer, proc, orders = map(int, sys.argv[2:5])
    for descriptor in (peer, proc):
        os.set_inheritable(descriptor, False)
    with os.fdopen(orders, "rb") as file:
        plan = parse(file.read())
    init.run(plan, channel, peer, init.execute, proc=proc)


if __name__ == "__main__":
    main()
