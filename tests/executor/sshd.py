"""An sshd of this user on loopback, behind which a Forge answers."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SSHD = os.environ.get("SSHD") or shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
"""Path of the program; None where there is none."""


@dataclass(frozen=True)
class Served:
    """A Forge behind an sshd."""

    port: int
    forge: Path
    """Program that the other side runs."""
    settings: Path
    """Settings of ssh with which this user is let in, in place of the user's own."""
    daemon: int
    """Process of the sshd."""

    @property
    def address(self) -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{self.forge}"


@contextmanager
def served(folder: Path, *program: object) -> Iterator[Served]:
    """Start an sshd with new keys; a Forge there is this program, or this machine's own."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forge = " ".join(map(str, program or (sys.executable, "-m", "forge")))
    (folder / "forge").write_text(f'#!/bin/sh\nexec {forge} "$@"\n')
    (folder / "forge").chmod(0o755)
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"
        f"SetEnv PATH={folder}:/usr/bin:/bin\n"
    )
    (folder / "ssh_config").write_text(
        f"IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        "StrictHostKeyChecking accept-new\nLogLevel ERROR\n"
    )
    with (folder / "sshd.log").open("w") as log:
        daemon = subprocess.Popen([str(SSHD), "-D", "-e", "-f", folder / "sshd_config"], stderr=log)
    try:
        until = time.monotonic() + 120
        while not _listens(port) and daemon.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        said = (folder / "sshd.log").read_text()
        if "privilege separation directory" in said:
            pytest.skip(f"this sshd was never set up: {said.strip()}")
        assert daemon.poll() is None, f"sshd ended: {said}"
        yield Served(port, folder / "forge", folder / "ssh_config", daemon.pid)
    finally:
        daemon.terminate()
        daemon.wait()


def ssh_with(settings: Path, folder: Path) -> dict[str, str]:
    """Return this environment with a program `ssh` in a new folder that uses these settings."""
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {settings} "$@"\n')
    (folder / "ssh").chmod(0o755)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
