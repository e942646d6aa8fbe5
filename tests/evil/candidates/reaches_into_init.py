"""Tries ptrace, process_vm_readv, pidfd_getfd, kcmp and every file of PID 1 in /proc, and raises if one of them
works.

Accepted: none of the calls that look into another process succeeds
Catalogue: J13 G12 G14
"""

import ctypes
import os


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def called(number, *arguments):
    return ctypes.CDLL(None, use_errno=True).syscall(number, *(ctypes.c_long(a) for a in arguments)) >= 0


def opened(name):
    try:
        with open(f"/proc/1/{name}", "rb") as file:
            return bool(file.read().strip(b"\0"))
    except OSError:
        return False


def listed(name):
    try:
        return bool(os.listdir(f"/proc/1/{name}"))
    except OSError:
        return False


def reached():
    buffer = ctypes.create_string_buffer(16)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 16)
    at = ctypes.addressof(vector)
    pidfd = os.pidfd_open(1)
    found = {
        "ptrace": called(101, 16, 1, 0, 0),
        "process_vm_readv": called(310, 1, at, 1, at, 1, 0),
        "process_vm_writev": called(311, 1, at, 1, at, 1, 0),
        "pidfd_getfd": called(438, pidfd, 0, 0),
        "kcmp": called(312, 1, os.getpid(), 0, 0, 0),
        **{name: opened(name) for name in ("mem", "environ", "maps", "auxv", "stack", "syscall", "cmdline")},
        **{name: listed(name) for name in ("fd", "cwd", "root", "map_files")},
    }
    os.close(pidfd)
    return found


def fused_add_rmsnorm(x, residual, weight, eps):
    if any(found := [name for name, done in reached().items() if done]):
        raise RuntimeError(f"reached {found}")
    return right(x, residual, weight, eps)
