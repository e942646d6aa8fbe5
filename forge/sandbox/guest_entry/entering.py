"""Runs the steps in order: leave the host, be PID 1 of a new namespace, start the guest there, wait for its end.

The caller decides how the guest's process becomes its program: `__main__` executes it, `zygote` has it already.
"""

import os
import signal
import socket
import sys

from forge.sandbox.guest_entry import bubblewrap, descriptors, init, kernel, namespaces, privileges, supervisor
from forge.sandbox.guest_entry.init import Become
from forge.sandbox.guest_entry.plan import EntryPlan, tell


def enter(channel: socket.socket, plan: EntryPlan, become: Become) -> None:
    """Build the sandbox, run the guest in it, and return when all its processes are gone.

    If a step fails, report it to the host and exit with status 1.
    """
    try:
        supervisor.follow_host(plan.host_pid)
        os.chdir("/")
        alarm = supervisor.Alarm()
        match plan.level:
            case "namespaces":
                _confined(plan, channel, alarm, become)
            case "bubblewrap":
                _wrapped(plan, channel, alarm)
            case "none":
                _unconfined(plan, channel, alarm, become)
    except kernel.StepFailed as failure:
        tell(channel, failed=failure.step, errno=failure.errno, detail=failure.detail)
        os._exit(1)


def _confined(plan: EntryPlan, channel: socket.socket, alarm: supervisor.Alarm, become: Become) -> None:
    namespaces.leave_host()
    supervisor.follow_host(plan.host_pid)  # the change of credentials may have cleared the death signal
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        signal.set_wakeup_fd(-1)
        init.run(plan, channel, read_end, become)
    descriptors.silence()
    descriptors.close_all_but(channel.fileno(), write_end, alarm.read_end, alarm.write_end)
    supervisor.outlive(child, alarm, plan.host_pid)


def _wrapped(plan: EntryPlan, channel: socket.socket, alarm: supervisor.Alarm) -> None:
    """Let bubblewrap leave the host; its child, Forge's PID 1, reports its own process id to the host."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        signal.set_wakeup_fd(-1)
        bubblewrap.execute(plan, channel, read_end)
    descriptors.silence()
    descriptors.close_all_but(channel.fileno(), write_end, alarm.read_end, alarm.write_end)
    supervisor.outlive(child, alarm, plan.host_pid)


def _unconfined(plan: EntryPlan, channel: socket.socket, alarm: supervisor.Alarm, become: Become) -> None:
    supervisor.adopt_orphans()
    parts = ["rlimits"]
    if sys.platform == "linux":
        privileges.forbid_gain()
        parts.append("no_new_privs")
    guest = init.start_guest(plan, become)
    tell(channel, started=parts)
    descriptors.silence()
    descriptors.close_all_but(channel.fileno(), alarm.read_end, alarm.write_end)
    supervisor.outlive_unconfined(guest, alarm, plan.host_pid, channel)
