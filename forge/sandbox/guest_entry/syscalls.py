"""Lists the numbers of the system calls that the filter knows, for each architecture it supports.

Sources: asm/unistd_64.h (x86_64) and asm-generic/unistd.h (aarch64), Linux 6.x. A call that an architecture doesn't
have isn't in its table.
"""

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
"""Value by which seccomp(2) names an architecture (linux/audit.h)."""

SOCKET = {"x86_64": 41, "aarch64": 198}
"""Number of the system call socket(2), by architecture."""
CLONE = {"x86_64": 56, "aarch64": 220}
"""Number of the system call clone(2), by architecture."""
CLONE3 = 435
"""Number of the system call clone3, the same on every architecture."""

FLOCK = {"x86_64": 73, "aarch64": 32}
"""Number of the system call flock(2), by architecture."""
FCNTL = {"x86_64": 72, "aarch64": 25}
"""Number of the system call fcntl(2), by architecture."""
SET_A_LOCK = (6, 7, 37, 38)
"""Commands of fcntl by which a file is locked: `F_SETLK`, `F_SETLKW`, and both for open files (linux/fcntl.h)."""

_CHOICES = {
    "fcntl": {"F_SETLEASE": (1, 1024), "F_NOTIFY": (1, 1026)},
    "prctl": {"PR_SCHED_CORE": (0, 62), "PR_SET_MEMORY_MERGE": (0, 67)},
    "madvise": {"MADV_MERGEABLE": (2, 12), "MADV_COLLAPSE": (2, 25)},
}
"""Choices that are refused, by call: place of the argument, and its value (linux/prctl.h, asm-generic/mman-common.h).

By `PR_SCHED_CORE` a core is shared with no other process: other load costs one side less than the others. Two let the
kernel look for equal pages in a stopped process, and take that time from one that is timed. By `MADV_COLLAPSE`
operands in shared memory move to huge pages: those of one side alone, and a caller's seldom lie so. Reading them in a
row was 1.5 times as fast, on a virtual machine.
By `F_SETLEASE` and `F_NOTIFY` a process learns that another one opens a file. Guests of one candidate see the same
files, and must not know of each other.
"""
_WITH_CHOICES = {
    "x86_64": {"madvise": 28, "fcntl": FCNTL["x86_64"], "prctl": 157},
    "aarch64": {"fcntl": FCNTL["aarch64"], "prctl": 167, "madvise": 233},
}
"""Numbers of the system calls of which only some choices are refused, by architecture."""
REFUSED_CHOICES = {
    machine: {name: (number, *which) for call, number in calls.items() for name, which in _CHOICES[call].items()}
    for machine, calls in _WITH_CHOICES.items()
}
"""Number of the call, place of the argument and its value, for each choice that is refused, by architecture."""

_SINCE_424 = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "open_tree_attr": 467,
}

_HOARDING: dict[str, dict[str, int]] = {
    "x86_64": {"shmget": 29, "semget": 64, "msgget": 68, "memfd_create": 319},
    "aarch64": {"msgget": 186, "semget": 190, "shmget": 194, "memfd_create": 279},
}
"""Calls that take memory which belongs to no process and no tmpfs: no limit counts it, and no kernel needs it."""

WITHOUT_DEVICES: dict[str, dict[str, int]] = {
    "x86_64": {
        "io_setup": 206,
        "timer_create": 222,
        "inotify_init": 253,
        "signalfd": 282,
        "timerfd_create": 283,
        "signalfd4": 289,
        "inotify_init1": 294,
        "sched_setattr": 314,
    },
    "aarch64": {
        "io_setup": 0,
        "inotify_init1": 26,
        "signalfd4": 74,
        "timerfd_create": 85,
        "timer_create": 107,
        "sched_setattr": 274,
    },
}
"""Calls that a guest is refused unless it has devices, whose driver may need them. By all but the last, the kernel
works for a stopped process, and takes the time from one that is timed. By the last, a process asks for shorter turns
on the processor, and a busy machine serves it sooner. By `inotify_init` it learns that another guest opens a file.
"""

REFUSED: dict[str, dict[str, int]] = {
    "x86_64": {
        "ptrace": 101,
        "syslog": 103,
        "uselib": 134,
        "personality": 135,
        "ustat": 136,
        "sysfs": 139,
        "vhangup": 153,
        "modify_ldt": 154,
        "pivot_root": 155,
        "_sysctl": 156,
        "adjtimex": 159,
        "chroot": 161,
        "acct": 163,
        "settimeofday": 164,
        "mount": 165,
        "umount2": 166,
        "swapon": 167,
        "swapoff": 168,
        "reboot": 169,
        "sethostname": 170,
        "setdomainname": 171,
        "iopl": 172,
        "ioperm": 173,
        "create_module": 174,
        "init_module": 175,
        "delete_module": 176,
        "get_kernel_syms": 177,
        "query_module": 178,
        "quotactl": 179,
        "nfsservctl": 180,
        "lookup_dcookie": 212,
        "clock_settime": 227,
        "vserver": 236,
        "kexec_load": 246,
        **_HOARDING["x86_64"],
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "unshare": 272,
        "perf_event_open": 298,
        "fanotify_init": 300,
        "name_to_handle_at": 303,
        "open_by_handle_at": 304,
        "clock_adjtime": 305,
        "setns": 308,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "finit_module": 313,
        "kexec_file_load": 320,
        "bpf": 321,
        "userfaultfd": 323,
        **_SINCE_424,
    },
    "aarch64": {
        "lookup_dcookie": 18,
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "nfsservctl": 42,
        "chroot": 51,
        "vhangup": 58,
        "quotactl": 60,
        "acct": 89,
        "personality": 92,
        "unshare": 97,
        "kexec_load": 104,
        "init_module": 105,
        "delete_module": 106,
        "clock_settime": 112,
        "syslog": 116,
        "ptrace": 117,
        "reboot": 142,
        "sethostname": 161,
        "setdomainname": 162,
        "settimeofday": 170,
        "adjtimex": 171,
        **_HOARDING["aarch64"],
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "swapon": 224,
        "swapoff": 225,
        "perf_event_open": 241,
        "fanotify_init": 262,
        "name_to_handle_at": 264,
        "open_by_handle_at": 265,
        "clock_adjtime": 266,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "finit_module": 273,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_file_load": 294,
        **_SINCE_424,
    },
}
