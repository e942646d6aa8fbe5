"""Tries to raise its limits, its priority and its real-time rank, to be heard at the terminal, and raises if it
gets one of them.

Accepted: limits only go down, and priorities are its own
Catalogue: J3 J4 A9
"""

import fcntl
import os
import resource
import termios


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def raised():
    for name in ("RLIMIT_DATA", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_CPU", "RLIMIT_NOFILE", "RLIMIT_CORE"):
        _, hard = resource.getrlimit(getattr(resource, name))
        if hard == resource.RLIM_INFINITY:
            yield name
            continue
        try:
            resource.setrlimit(getattr(resource, name), (hard + 1, hard + 1))
            yield name
        except (OSError, ValueError):
            continue
    for name, attempt in {
        "priority": lambda: os.nice(-5),
        "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        "terminal": lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x"),
        "uid 0": lambda: os.setuid(0),
        "out of memory score": lambda: os.close(os.open("/proc/self/oom_score_adj", os.O_WRONLY)),
    }.items():
        try:
            attempt()
            yield name
        except OSError:
            continue


def fused_add_rmsnorm(x, residual, weight, eps):
    if found := list(raised()):
        raise RuntimeError(f"raised {found}")
    return right(x, residual, weight, eps)
