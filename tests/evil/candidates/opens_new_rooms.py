"""Asks the kernel for namespaces, mounts, keys, programs in the kernel, counters and asynchronous rings, and
raises if it is given one.

Accepted: the kernel refuses every one of these calls
Catalogue: J13 J14 J16
"""

import ctypes


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


CALLS = {
    "unshare": (272, 0x10000000),
    "setns": (308, 0, 0),
    "clone into a user namespace": (56, 0x10000000 | 17, 0, 0, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "open_tree": (428, -100, 0, 0),
    "fsopen": (430, 0, 0),
    "pivot_root": (155, 0, 0),
    "chroot": (161, 0),
    "bpf": (321, 0, 0, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "userfaultfd": (323, 1),
    "io_uring_setup": (425, 1, 0),
    "add_key": (248, 0, 0, 0, 0, 0),
    "keyctl": (250, 0, 0, 0, 0, 0),
    "init_module": (175, 0, 0, 0),
    "kexec_load": (246, 0, 0, 0, 0),
    "clock_settime": (227, 0, 0),
    "sethostname": (170, 0, 0),
    "process_madvise": (440, 0, 0, 0, 0, 0),
    "personality": (135, 0x0040000),
}
REFUSALS = (1, 38)  # EPERM, ENOSYS


def given():
    libc = ctypes.CDLL(None, use_errno=True)
    for name, (number, *arguments) in CALLS.items():
        if libc.syscall(number, *(ctypes.c_long(a) for a in arguments)) != -1 or ctypes.get_errno() not in REFUSALS:
            yield name


def fused_add_rmsnorm(x, residual, weight, eps):
    if found := list(given()):
        raise RuntimeError(f"was given {found}")
    return right(x, residual, weight, eps)
