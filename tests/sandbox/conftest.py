import pytest

from forge.sandbox import isolation


@pytest.fixture
def walls() -> isolation.Isolation:
    """Skip where this machine can't build the walls; `test_isolation` asserts that it then says so."""
    probed = isolation.probe()
    if probed.level != "namespaces":
        pytest.skip(f"no namespaces here: {probed.missing}")
    return probed
