"""Builds the file tree that the guest sees: a skeleton in memory, the host's trees bound read-only, its scratch.

Distrusts the host's tree. A path that isn't bound doesn't exist here. A hidden path in a bound tree (`masked`) is
covered by an empty directory or file. The root is changed before trees are mounted, so that no symlink inside a bound
tree can lead a mount back to the host.
"""

import os
import stat
import struct

from forge.sandbox.guest_entry import kernel, landlock
from forge.sandbox.guest_entry.namespaces import NOBODY, host_is_root
from forge.sandbox.guest_entry.plan import EntryPlan

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Device files of every guest."""
WRITABLE = ("/scratch", "/tmp", "/dev/shm")  # noqa: S108 - the guest's own, not the host's
"""Folders that a guest may write to."""
_SHARED_BY_ALL = ("acpi", "bus", "driver", "fs", "irq", "scsi", "sys", "sysrq-trigger")  # of /proc
_BASE, _OLD, _STORE = "/tmp", "/.host", "/.store"  # noqa: S108 - covered by a mount of our own, never written

# linux/mount.h
_NOSUID, _NODEV, _NOEXEC, _BIND, _RECURSIVE, _PRIVATE, _DETACH = 2, 4, 8, 4096, 16384, 1 << 18, 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 1, 2, 4, 8
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

FILES = {
    "/etc/passwd": f"guest:x:{NOBODY}:{NOBODY}::/scratch:/bin/sh\n",
    "/etc/group": f"guest:x:{NOBODY}:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
STANDARD_LINKS = (
    ("/dev/fd", "/proc/self/fd"),
    *((f"/dev/{name}", f"/proc/self/fd/{number}") for number, name in enumerate(("stdin", "stdout", "stderr"))),
)


def build(plan: EntryPlan) -> bool:
    """Replace the root by the guest's, read-only; return whether it has a /proc."""
    os.umask(0o022)
    with kernel.step("root skeleton"):
        kernel.mount(None, "/", None, _RECURSIVE | _PRIVATE)
        kernel.mount("tmpfs", _BASE, "tmpfs", _NOSUID | _NODEV, "size=4m,nr_inodes=8192,mode=755")
        os.mkdir(_BASE + _OLD)
        kernel.syscall("pivot_root", _BASE.encode(), (_BASE + _OLD).encode())
        os.chdir("/")
    with kernel.step("scratch"):
        _make_scratch(plan.scratch_bytes)
    with kernel.step("proc"):
        has_proc = _mount_proc(writable=bool(plan.devices))
    with kernel.step("devices"):
        for path in (*DEVICES, *plan.devices):
            _bind(path, path, _ATTR_NOSUID | _ATTR_NOEXEC)
    with kernel.step("root files"):
        _write_files(plan.links)
    with kernel.step("binds"):
        masks = _fill(plan)
    with kernel.step("seal root"):
        kernel.unmount(_OLD, _DETACH)
        os.rmdir(_OLD)
        for path in (*masks, "/"):
            _set_attributes(path, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, recursive=False)
    return has_proc


def rules(plan: EntryPlan, has_proc: bool) -> list[tuple[str, int]]:
    """Return what Landlock allows in this tree; "/" and "/dev" are left out, so they can't be listed."""
    allowed = [
        (target, landlock.READ_WRITE if writable else landlock.READ_ONLY) for _, target, writable in plan.binds
    ]
    allowed += [(path, landlock.READ_WRITE) for path in WRITABLE]
    allowed += [(path, landlock.DEVICE) for path in (*DEVICES, *plan.devices)]
    allowed.append(("/etc", landlock.READ_ONLY))
    if has_proc:
        names_threads = landlock.WRITE_FILE | landlock.TRUNCATE if plan.devices else 0
        allowed.append(("/proc", landlock.READ_FILE | landlock.READ_DIR | names_threads))
    return allowed


def give_scratch() -> None:
    """Make the guest the owner of the writable places, if bubblewrap built them as root."""
    if host_is_root():
        for target in WRITABLE:
            os.chown(target, NOBODY, NOBODY)


def _make_scratch(scratch_bytes: int) -> None:
    """Mount one tmpfs at three places, so that one size limits all that the guest can write."""
    os.mkdir(_STORE)
    inodes = max(1024, scratch_bytes >> 14)
    kernel.mount("tmpfs", _STORE, "tmpfs", _NOSUID | _NODEV, f"size={scratch_bytes},nr_inodes={inodes},mode=755")
    for target in WRITABLE:
        directory = f"{_STORE}/{target.rpartition('/')[2]}"
        os.mkdir(directory)
        os.chmod(directory, 0o700)
        if host_is_root():
            os.chown(directory, NOBODY, NOBODY)
        os.makedirs(target)
        kernel.mount(directory, target, None, _BIND)
    kernel.unmount(_STORE, 0)
    os.rmdir(_STORE)


def _mount_proc(*, writable: bool) -> bool:
    """Mount the /proc of the guest's PID namespace, read-only.

    With devices it is writable except for what reaches past the guest's own processes. CUDA refuses to start (error
    304) if it can't write the names of its threads to /proc/self/task/*/comm.
    """
    os.mkdir("/proc")
    try:
        kernel.mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    except PermissionError:
        return False  # an outer container hides parts of its /proc; the kernel then refuses a fresh one
    sealed = [f"/proc/{name}" for name in _SHARED_BY_ALL] if writable else ["/proc"]
    for path in filter(os.path.exists, sealed):
        if writable:
            kernel.mount(path, path, None, _BIND | _RECURSIVE)
        _set_attributes(path, _ATTR_RDONLY, recursive=False)
    return True


def _fill(plan: EntryPlan) -> list[str]:
    """Mount binds and masks from the shallowest target down; return the masks, still writable."""
    order: list[tuple[str, str | None, bool]] = [(path, None, False) for path in plan.masked]
    order += [(target, source, writable) for source, target, writable in plan.binds]
    masks = []
    for target, source, writable in sorted(order, key=lambda entry: (entry[0].count("/"), entry[0])):
        if source is not None:
            _bind(source, target, _ATTR_NOSUID | _ATTR_NODEV | (0 if writable else _ATTR_RDONLY))
        elif os.path.exists(target):
            masks += _mask(target)
    return masks


def _bind(source: str, target: str, attributes: int) -> None:
    source = _OLD + source
    _make_point(target, directory=stat.S_ISDIR(os.lstat(source).st_mode))
    kernel.mount(source, target, None, _BIND | _RECURSIVE)
    _set_attributes(target, attributes, recursive=True)


def _mask(target: str) -> list[str]:
    """Cover `target` with an empty file or directory; return it if mount points can still be made in it."""
    if os.path.isdir(target):
        kernel.mount("tmpfs", target, "tmpfs", _NOSUID | _NODEV, "size=64k,nr_inodes=256,mode=755")
        return [target]
    if not os.path.exists("/.empty"):
        _make_point("/.empty", directory=False)
    kernel.mount("/.empty", target, None, _BIND)
    _set_attributes(target, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, recursive=False)
    return []


def _make_point(target: str, *, directory: bool) -> None:
    if os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if directory:
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444))


def _write_files(links: list[tuple[str, str]]) -> None:
    for path, text in (*links, *STANDARD_LINKS):
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(text, path)
    os.makedirs("/etc", exist_ok=True)
    for path, text in FILES.items():
        if not os.path.lexists(path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
            os.write(descriptor, text.encode())  # `open` would import a codec from a tree that is gone by now
            os.close(descriptor)


def _set_attributes(path: str, attributes: int, *, recursive: bool) -> None:
    """Add attributes to a mount, and to all below it at once, by mount_setattr(2)."""
    structure = struct.pack("=QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    kernel.syscall("mount_setattr", _AT_FDCWD, path.encode(), flags, structure, len(structure))
