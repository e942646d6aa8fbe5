import confined
import pytest

from forge.sandbox.isolation import Level


@pytest.fixture(params=["namespaces", "bubblewrap"])
def walled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Level:
    """Every level with walls, one after the other, as what `confined` starts guests at."""
    level: Level = request.param
    confined.require(level)
    monkeypatch.setattr(confined, "level", level)
    return level
