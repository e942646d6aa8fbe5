"""Every test leaves torch without adopted operations."""

from collections.abc import Iterator

import pytest

from forge.adopt import adopting


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for adopted in list(adopting._open):
        adopted.close()
