"""Runs as a user's coding agent's first processes: leaves the host except its network, and starts the command.

Distrusts the command. It sees the paths of its plan and nothing else of the disk, and has no rights on the host.
Every process that it starts ends with it: PID 1 of its namespace waits for it, and the kernel ends the rest.
"""

import os
import signal
import sys
from typing import NoReturn

from forge.sandbox.guest_entry import descriptors, kernel, namespaces, privileges, root
from forge.sandbox.guest_entry.plan import EntryPlan, parse

NOT_STARTED = 125
"""Exit status if the walls couldn't be built. No program was started then. The programs env and timeout of GNU end
with the same number if they fail themselves."""


def main() -> None:
    """Read the plan from stdin, run its program, and exit with the program's status."""
    plan = parse(sys.stdin.buffer.readline())
    try:
        privileges.die_with_parent(signal.SIGKILL)
        os.chdir("/")
        proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
        namespaces.leave_host(keep_network=True)
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write_end)
            _first(plan, read_end, proc)
        os.close(read_end)
    except kernel.StepFailed as failure:
        _give_up(failure)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _first(plan: EntryPlan, peer: int, proc: int) -> NoReturn:
    """Be PID 1 of the new namespace. `peer` hangs up when the parent ends."""
    try:
        privileges.die_with_parent(signal.SIGKILL)
        namespaces.leave_mounts_and_name()
        root.build(plan)
        namespaces.become_nobody(proc)
        os.close(proc)
        privileges.forbid_gain()
        privileges.drop_capabilities()
        privileges.set_dumpable(False)
        privileges.die_with_parent(signal.SIGKILL)  # the changes of credentials have cleared it
        privileges.require_peer(peer)
    except kernel.StepFailed as failure:
        _give_up(failure)
    main_process = os.fork()
    if main_process == 0:
        os.setsid()
        privileges.set_dumpable(True)
        os.chdir(plan.directory)
        os.closerange(descriptors.FIRST, 256)
        try:
            os.execvpe(plan.argv[0], plan.argv, plan.environment)  # noqa: S606  # no shell is the point
        except OSError as error:
            _give_up(kernel.StepFailed("start", error.errno or 0, f"{plan.argv[0]}: {error.strerror}"))
    while True:
        pid, status = os.wait()
        if pid == main_process:
            os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _give_up(failure: kernel.StepFailed) -> NoReturn:
    os.write(2, f"forge: {failure.step}: {failure.detail}\n".encode(errors="replace"))
    os._exit(NOT_STARTED)


if __name__ == "__main__":
    main()
