"""Names this process and all that it starts, so that two measurements can be told to be from different ones."""

import os
from functools import cache

from forge.domain.digest import Digest, sha256


@cache
def process_sha256() -> Digest:
    """Return a digest of random bytes, drawn at the first call. A fork shares its parent's state, and this digest."""
    return sha256(os.urandom(32))
