"""The program that builds the walls around itself and then becomes the guest, with one file per mechanism.

- `__main__`: the order of the steps, and the bootstrap (it runs by path, `python -I -S guest_entry/__main__.py`)
- `plan`: what the host asked for, and the messages that go back
- `kernel`: system calls by name, and a failure that says which step failed
- `namespaces`: user, PID, mount, network, IPC and UTS namespaces; the unprivileged identity
- `root`: the file tree that the guest sees
- `landlock`, `seccomp`, `privileges`, `rlimits`: what is left to the guest inside
- `descriptors`: which files are open when it starts
- `supervisor`, `init`: the two processes that remain: one in the host's PID namespace, one as PID 1

Everything here is trusted code that runs before the guest's first instruction, and it imports only the standard
library. A step that fails ends the program: there is no fallback with fewer walls.
"""
