"""Enters new namespaces, and takes an identity that has no rights on the host.

Distrusts root above all: RLIMIT_NPROC doesn't limit uid 0, and a root process that escapes is root. So a privileged
host builds everything in namespaces that its own user namespace keeps owning. It then becomes uid 65534 and enters a
user namespace with that one uid in it. Rights that the guest regains there are worth nothing outside. An ordinary
user can't do that, so it enters its user namespace first and maps only itself.
"""

import os
import socket

from forge.sandbox.guest_entry import kernel, privileges

NOBODY = 65534
"""Uid and gid of a guest, which own nothing on the host."""
HOSTNAME = "guest"

# linux/sched.h
NEW_MOUNT, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
NEW_CGROUP = 0x02000000
"""Flag of unshare(2) for a new cgroup namespace (CLONE_NEWCGROUP)."""


def host_is_root() -> bool:
    """Return whether this process runs as uid 0, and so must change its uid."""
    return os.geteuid() == 0


def leave_host(*, keep_network: bool = False) -> None:
    """Enter new PID, network, IPC and UTS namespaces (PID: from the next fork on).

    A user enters its own user namespace first. With `keep_network` the host's network stays.
    """
    uid, gid = os.geteuid(), os.getegid()
    wanted = NEW_PID | NEW_IPC | NEW_UTS | _cgroup() | (0 if keep_network else NEW_NET)
    with kernel.step("namespaces"):
        if host_is_root():
            kernel.unshare(wanted)
            return
        kernel.unshare(NEW_USER | wanted)
        directory = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
        _map_one(directory, uid, gid)
        os.close(directory)


def _cgroup() -> int:
    """Return the flag of a cgroup namespace if there are cgroups.

    /proc/self/cgroup then doesn't name the host's groups.
    """
    return NEW_CGROUP if os.path.exists("/proc/self/ns/cgroup") else 0


def leave_mounts_and_name() -> None:
    """Enter a new mount namespace and take a host name that reveals nothing."""
    with kernel.step("mount namespace"):
        kernel.unshare(NEW_MOUNT)
    with kernel.step("host name"):
        socket.sethostname(HOSTNAME)


def become_nobody(proc: int) -> None:
    """Exchange root for uid 65534 inside a user namespace of its own; do nothing for an ordinary user.

    `proc` is a directory descriptor of the host's /proc, since the guest's own may be read-only or absent.
    """
    if not host_is_root():
        return
    with kernel.step("unprivileged uid"):
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        privileges.keep_capabilities_over_setuid()
        os.setresuid(NOBODY, NOBODY, NOBODY)
        privileges.raise_permitted()  # where only privileged processes may create user namespaces
        privileges.set_dumpable(True)  # otherwise /proc/self/uid_map would belong to root
    with kernel.step("user namespace"):
        kernel.unshare(NEW_USER)
        _map_one(proc, NOBODY, NOBODY)
        if os.getresuid() != (NOBODY,) * 3 or os.getresgid() != (NOBODY,) * 3:
            raise OSError(1, f"uid is {os.getresuid()!r} after the mapping")


def _map_one(proc: int, uid: int, gid: int) -> None:
    """Map `uid` and `gid` of the parent namespace to 65534, and nothing else."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {uid} 1"),
        ("gid_map", f"{NOBODY} {gid} 1"),
    ):
        descriptor = os.open(f"self/{name}", os.O_WRONLY, dir_fd=proc)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
