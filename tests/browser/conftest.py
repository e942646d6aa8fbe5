import os

from tests.cli.conftest import empty, empty_workspace, home, open_workspace
from tests.web.conftest import filled_workspace, server

__all__ = ["empty", "empty_workspace", "filled_workspace", "home", "open_workspace", "server"]
collect_ignore_glob = [] if os.environ.get("FORGE_TEST_WEB") else ["test_*.py"]
"""Without FORGE_TEST_WEB these tests aren't collected: `make test-web` installs what they need and sets it."""
