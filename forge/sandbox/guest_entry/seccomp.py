"""Refuses the system calls that no kernel under test needs and that have opened sandboxes before.

This is a deny list, not an allow list. CUDA and torch use hundreds of calls that change with every release, and the
other walls don't depend on this one. Distrusts other calling conventions: a call through i386 or x32 numbers would
pass a filter of 64-bit ones, so it kills the process. `pidfd_open` is allowed: a pidfd is only good for signals,
which the PID namespace confines, and asyncio waits with it. `pidfd_getfd` is refused.

Locks of files seem to succeed, and nothing is locked. Guests of one candidate see the same files, so a lock would
tell one of them that another is there. Libraries lock their caches, which a guest shares with no other process.
"""

import ctypes
import struct

from forge.sandbox.guest_entry import kernel
from forge.sandbox.guest_entry.syscalls import (
    AUDIT_ARCH,
    CLONE,
    CLONE3,
    FCNTL,
    FLOCK,
    REFUSED,
    REFUSED_CHOICES,
    SET_A_LOCK,
    SOCKET,
    WITHOUT_DEVICES,
)

SUCCESS, EPERM, ENOSYS, EAFNOSUPPORT = 0, 1, 38, 97

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# offsets in struct seccomp_data; little endian: low half first
_NUMBER, _ARCHITECTURE, _ARGUMENT_0 = 0, 4, 16
_ARGUMENT_BYTES = 8
"""Size of a system call's argument in bytes, in struct seccomp_data."""
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_SET_MODE_FILTER, _TSYNC = 1, 1
_X32 = 0x40000000
"""Bit in a system call's number that means the x32 ABI (__X32_SYSCALL_BIT)."""
# CLONE_NEW: cgroup, UTS, IPC, user, PID, net, mount (linux/sched.h)
_NEW_NAMESPACE = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x00020000
# AF_UNIX, AF_INET, AF_INET6. Not AF_VSOCK: the hypervisor answers it in any network namespace
_FAMILIES = (1, 2, 10)

Instruction = tuple[int, int, int, int]
"""Fields of an instruction: operation, jump if true, jump if false, operand."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def program(machine: str, *, devices: bool = False) -> list[Instruction]:
    """Return the filter for an architecture, as classic BPF; with `devices`, a driver's calls are allowed."""
    refused = {**REFUSED[machine], **({} if devices else WITHOUT_DEVICES[machine])}
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    code += [
        (_EQUAL, 0, 1, CLONE3),
        (_RETURN, 0, 0, _ERRNO | ENOSYS),
    ]  # its flags are in memory, which a filter can't read
    for number in refused.values():
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | EPERM)]
    code += [(_EQUAL, 0, 1, FLOCK[machine]), (_RETURN, 0, 0, _ERRNO | SUCCESS)]
    answers = dict.fromkeys(REFUSED_CHOICES[machine].values(), EPERM)
    answers |= {(FCNTL[machine], 1, command): SUCCESS for command in SET_A_LOCK}
    for (number, place, value), answer in answers.items():
        code += [
            (_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, _ARGUMENT_0 + place * _ARGUMENT_BYTES),
            (_EQUAL, 0, 1, value),
            (_RETURN, 0, 0, _ERRNO | answer),
            (_LOAD, 0, 0, _NUMBER),
        ]
    code += [
        (_EQUAL, 0, 4, CLONE[machine]),
        (_LOAD, 0, 0, _ARGUMENT_0),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACE),
        (_RETURN, 0, 0, _ERRNO | EPERM),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 2 + len(_FAMILIES), SOCKET[machine]),
        (_LOAD, 0, 0, _ARGUMENT_0),
    ]
    for index, family in enumerate(_FAMILIES):
        code.append((_EQUAL, len(_FAMILIES) - index, 0, family))
    return [*code, (_RETURN, 0, 0, _ERRNO | EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]


def filter_calls(*, devices: bool = False) -> None:
    """Apply the filter to this process, all its threads and children; no_new_privs must be set."""
    with kernel.step("seccomp"):
        code = program(kernel.machine(), devices=devices)
        packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
        kernel.syscall("seccomp", _SET_MODE_FILTER, _TSYNC, _Program(len(code), packed))
