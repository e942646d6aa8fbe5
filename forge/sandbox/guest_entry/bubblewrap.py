"""Builds the second level of isolation: bubblewrap makes the namespaces and the mounts, Forge does everything else.

Some kernels let bubblewrap make a user namespace, but not any program (AppArmor's restriction of unprivileged user
namespaces names it as an exception). Forge's PID 1 runs inside it, and continues with the same steps as after its own
mounts. Distrusts the search path: only the program in the system's folders is used.
"""

import os
import socket
import sys
from collections.abc import Iterator
from typing import NoReturn

from forge.sandbox.guest_entry import kernel
from forge.sandbox.guest_entry.namespaces import HOSTNAME, NOBODY, host_is_root
from forge.sandbox.guest_entry.plan import EntryPlan
from forge.sandbox.guest_entry.root import DEVICES, FILES, STANDARD_LINKS, WRITABLE

PROGRAMS = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
"""Paths at which bubblewrap is looked for."""
STORE = "/.store"
OWN = "/.enter/forge/sandbox/guest_entry"
"""Path of Forge's own part inside. It is mounted, but Landlock lets no guest open it."""


def program() -> str | None:
    """Return the installed bubblewrap, if there is one."""
    return next((path for path in PROGRAMS if os.access(path, os.X_OK)), None)


def execute(plan: EntryPlan, channel: socket.socket, peer: int) -> NoReturn:
    """Become bubblewrap, and in it `wrapped`; bubblewrap's error messages go to the log."""
    with kernel.step("bubblewrap"):
        path = program()
        if path is None:
            raise FileNotFoundError(2, f"no bubblewrap at {' or '.join(PROGRAMS)}")
        proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
        orders = _memory(plan.line())
        handed = [channel.fileno(), peer, proc, orders]
        for number in handed:
            os.set_inheritable(number, True)
        inside = [sys.executable, "-I", "-S", f"{OWN}/wrapped.py", *map(str, handed)]
        os.execve(path, [path, *arguments(plan), "--", *inside], {})  # noqa: S606 - no shell is the point
    raise AssertionError("execve returned")


def arguments(plan: EntryPlan) -> Iterator[str]:
    """Yield bubblewrap's arguments for the tree that `root` builds."""
    yield from (
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--hostname",
        HOSTNAME,
    )
    if not host_is_root():  # root stays until the mounts stand, then becomes uid 65534 in a namespace of its own
        yield from ("--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY))
    yield from ("--as-pid-1", "--die-with-parent", "--chdir", "/")
    for folder in _folders(plan):  # made implicitly, only their maker could read them
        yield from ("--perms", "0755", "--dir", folder)
    yield from ("--size", str(plan.scratch_bytes), "--tmpfs", STORE)
    for target in WRITABLE:
        inside = f"{STORE}/{target.rpartition('/')[2]}"
        yield from ("--perms", "0700", "--dir", inside)
        yield from ("--symlink", os.path.relpath(inside, os.path.dirname(target)), target)
    yield from ("--proc", "/proc")
    for device in (*DEVICES, *plan.devices):
        yield from ("--dev-bind", device, device)
    for link, text in (*plan.links, *STANDARD_LINKS):
        yield from ("--symlink", text, link)
    for file, text in FILES.items():
        yield from ("--perms", "0444", "--file", str(_memory(text.encode())), file)
    yield from ("--ro-bind", os.path.dirname(os.path.realpath(__file__)), OWN)
    yield from _trees(plan)
    if not plan.devices:
        yield from ("--remount-ro", "/proc")
    yield from ("--remount-ro", "/")


def _folders(plan: EntryPlan) -> list[str]:
    links = [link for link, _ in plan.links]
    placed = {*DEVICES, *links, *FILES, OWN, *(target for _, target, _ in plan.binds)}
    found: set[str] = set()
    while placed := {os.path.dirname(path) for path in placed} - {"/"}:
        found |= placed
    return sorted(found - set(links))


def _trees(plan: EntryPlan) -> Iterator[str]:
    """Yield binds and masks from the shallowest target down; a mask that covers nothing is left out."""
    order: list[tuple[str, str | None, bool]] = [(path, None, False) for path in plan.masked]
    order += [(target, source, writable) for source, target, writable in plan.binds]
    covers: dict[str, str | None] = {}
    masks: list[str] = []
    for target, source, writable in sorted(order, key=lambda entry: (entry[0].count("/"), entry[0])):
        if source is not None:
            yield from ("--bind" if writable else "--ro-bind", source, target)
        elif (shown := _on_host(target, covers)) is None or not os.path.exists(shown):
            continue
        elif os.path.isdir(shown):
            yield from ("--perms", "0755", "--size", str(1 << 16), "--tmpfs", target)
            masks.append(target)
        else:
            yield from ("--perms", "0444", "--ro-bind-data", str(_memory(b"")), target)
        covers[target] = source
    for mask in masks:
        yield from ("--remount-ro", mask)


def _on_host(target: str, covers: dict[str, str | None]) -> str | None:
    """Return the host's path of what would be visible at `target`; None if nothing would."""
    above = target
    while above not in covers and above != "/":
        above = os.path.dirname(above)
    source = covers.get(above)
    return None if source is None else source + target[len(above) :]


def _memory(content: bytes) -> int:
    """Return an inheritable descriptor from which `content` can be read once."""
    descriptor = os.memfd_create("forge-bubblewrap", 0)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
