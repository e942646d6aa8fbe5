from tests.cli.conftest import empty_workspace, home, open_workspace

__all__ = ["empty_workspace", "home", "open_workspace"]
