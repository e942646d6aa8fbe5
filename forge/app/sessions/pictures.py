"""Reads a picture of a profiler, such as a screenshot of Xcode, for models that see."""

import base64
from pathlib import Path

from forge.app.user.user_paths import read_named
from forge.domain.authoring import MOST_IMAGE_CHARACTERS
from forge.errors import UsageError

IMAGE = "image:"
"""Beginning of a `--profile` that names a picture."""
PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""First bytes of a file -> media type. Both forms are taken by every provider."""
PICTURE_BYTES = MOST_IMAGE_CHARACTERS * 3 // 4
"""Size of a picture in bytes, at most. Base64 makes four characters of three bytes."""


def read_picture(name: str) -> str:
    """Return a picture in base64; raise UsageError for another file."""
    what = f"the picture {name[:200]!r}"
    content = read_named(Path(name), what=what, expected="a PNG or JPEG", limit_bytes=PICTURE_BYTES)
    if not content.startswith(tuple(PICTURES)):
        raise UsageError(f"{what} begins with {content[:8]!r}: expected a PNG or JPEG")
    return base64.b64encode(content).decode()
