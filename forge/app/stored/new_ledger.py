"""Makes a workspace's ledger and the key that signs it: both, or neither."""

import base64
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from forge import __version__
from forge.ledger.failures import NO_LEDGER_MADE, storage_errors
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.signatures.signing import SEED_BYTES, log_name
from forge.ledger.store import Ledger


def make_ledger(
    path: Path, keys: Path, *, origin: str, now: Callable[[], datetime], new_id: Callable[[], str]
) -> None:
    """Create a ledger at `path` whose first event names a new key in `keys`."""
    ledger_id = new_id()
    keyring = Keyring(keys, log_name(origin, ledger_id))
    key = keyring.make(os.urandom(SEED_BYTES))
    try:
        with storage_errors(path, left=NO_LEDGER_MADE):
            Ledger.create(
                path,
                ledger_id=ledger_id,
                origin=origin,
                forge_version=__version__,
                now=now,
                new_id=new_id,
                public_key=base64.b64encode(key.public).decode(),
            ).close()
    except BaseException:
        if not path.exists():  # a ledger that is in place names the key
            keyring.discard(key.public)
        raise
