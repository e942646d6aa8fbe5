"""Remembers which bytes of `policy.toml` were read without an error, so that a list needn't read them again.

Lists use no policy, and must still refuse a workspace whose policy can't be read. The stamp may be deleted.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from forge import __version__
from forge.app.user.home import RUNS_FOLDER
from forge.app.user.user_paths import read_regular

POLICY_FILE = "policy.toml"
"""Name of the file with a workspace's policy."""
POLICY_LIMIT_BYTES = 1 << 20
"""Largest policy file that is read, in bytes. Chosen; the limit keeps a wrong file out of memory."""
STAMP_FILE = "policy.read"
"""Name of the stamp in the folder of runs."""


def was_read(home: Path) -> bool:
    """Return whether there is no policy file, or one whose bytes this version read before without an error."""
    path = home / POLICY_FILE
    if not os.path.lexists(path):
        return True
    try:
        return (home / RUNS_FOLDER / STAMP_FILE).read_text() == _stamp(path)
    except (OSError, ValueError):
        return False


def remember(home: Path) -> None:
    """Remember that the policy file was read. A folder that can't be written to is no fault."""
    path = home / POLICY_FILE
    if was_read(home):
        return
    stamp = home / RUNS_FOLDER / STAMP_FILE
    written = stamp.with_name(f".{STAMP_FILE}.{os.getpid()}")
    with suppress(OSError, ValueError):
        written.write_text(_stamp(path))
        written.replace(stamp)


def _stamp(path: Path) -> str:
    content = read_regular(path, limit_bytes=POLICY_LIMIT_BYTES)
    return hashlib.sha256(__version__.encode() + b"\n" + content).hexdigest()
