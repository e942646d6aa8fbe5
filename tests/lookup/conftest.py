"""An empty history to grow."""

import pytest

from tests.projections.histories import History, opened


@pytest.fixture
def history() -> History:
    return opened()
