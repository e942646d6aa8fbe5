"""Sets the resource limits of one process, last of all: they limit the guest and not the code that builds its walls.

Inherited limits are kept if they are tighter; looser ones aren't trusted.
"""

import resource
import sys

from forge.sandbox.guest_entry import kernel

_FIXED = {
    "CORE": 0,
    "STACK": 8 << 20,  # as most systems set it: what needs more ends a server
    "RTPRIO": 0,
    "NICE": 0,
    "MSGQUEUE": 1 << 20,
    "MEMLOCK": 64 << 20,
    "SIGPENDING": 4096,
}
_CPU_GRACE_S = 1  # SIGXCPU first, SIGKILL a second later
"""Seconds of processor time between the soft limit and the hard one."""


def apply(rlimits: dict[str, int]) -> None:
    """Set soft and hard limits; `rlimits` has names as in RLIMIT_<name>."""
    with kernel.step("rlimits"):
        for name, wanted in {**_FIXED, **rlimits}.items():
            which = getattr(resource, f"RLIMIT_{name}", None)
            if which is None:
                if sys.platform == "linux" or name in rlimits:
                    raise ValueError(f"no RLIMIT_{name} on this platform")
                continue
            _, hard = resource.getrlimit(which)
            ceiling = wanted + (_CPU_GRACE_S if name == "CPU" else 0)
            if hard != resource.RLIM_INFINITY:
                ceiling = min(ceiling, hard)
            resource.setrlimit(which, (min(wanted, ceiling), ceiling))
