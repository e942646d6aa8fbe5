"""Build the walls around this process and become the guest: `python -I -S __main__.py <descriptor>`.

The descriptor is a socket on which the host sends the plan and hears what became of it. The file runs by
path, so that it works from a checkout, an editable install and a wheel alike; it adds the package's parent
directory behind the standard library. It trusts the host that started it, and fails closed on all else.
"""

import os
import signal
import socket
import sys

if not __package__:
    sys.path.append(os.path.realpath(__file__).rsplit("/", 4)[0])  # pathlib costs more than it says

from forge.sandbox.enter import descriptors, init, kernel, namespaces, privileges, supervisor
from forge.sandbox.enter.plan import Plan, receive, send_descriptor, tell


def main() -> None:
    """Enter as the plan says; exits only after the guest's tree is gone."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    try:
        plan = receive(channel)
        supervisor.follow_host(plan.host_pid)
        os.chdir("/")
        alarm = supervisor.Alarm()
        if plan.level == "namespaces":
            _confined(plan, channel, alarm)
        else:
            _unconfined(plan, channel, alarm)
    except kernel.StepFailed as failure:
        tell(channel, failed=failure.step, errno=failure.errno, detail=failure.detail)
        os._exit(1)
    os._exit(0)


def _confined(plan: Plan, channel: socket.socket, alarm: supervisor.Alarm) -> None:
    namespaces.leave_host()
    supervisor.follow_host(plan.host_pid)  # the change of credentials may have cleared the death signal
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        signal.set_wakeup_fd(-1)
        init.run(plan, channel, read_end)
    send_descriptor(channel, os.pidfd_open(child))
    descriptors.silence()
    descriptors.close_all_but(channel.fileno(), write_end, alarm.read_end, alarm.write_end)
    supervisor.outlive(child, alarm, plan.host_pid)


def _unconfined(plan: Plan, channel: socket.socket, alarm: supervisor.Alarm) -> None:
    supervisor.adopt_orphans()
    parts = ["rlimits"]
    if sys.platform == "linux":
        privileges.forbid_gain()
        parts.append("no_new_privs")
    guest = init.start_guest(plan)
    tell(channel, started=parts)
    descriptors.silence()
    descriptors.close_all_but(channel.fileno(), alarm.read_end, alarm.write_end)
    supervisor.outlive_unconfined(guest, alarm, plan.host_pid, channel)


if __name__ == "__main__":
    main()
