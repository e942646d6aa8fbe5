"""Builds the walls around this process and becomes the guest: `python -I -S __main__.py <descriptor>`.

The descriptor is a socket on which the host sends the plan and gets the reports. The file runs by path, so that it
works from a checkout, an editable install and a wheel alike. It adds the package's parent directory behind the
standard library. It trusts the host that started it, and fails closed on all else.
"""

import os
import signal
import socket
import sys

if not __package__:
    sys.path.append(os.path.realpath(__file__).rsplit("/", 4)[0])  # importing pathlib would slow the start

from forge.sandbox.guest_entry import entering, init
from forge.sandbox.guest_entry.plan import receive


def main() -> None:
    """Enter as the plan says; exit only after the guest's tree is gone."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    entering.enter(channel, receive(channel), init.execute)
    os._exit(0)


if __name__ == "__main__":
    main()
