"""Puts migrations, examples and the page of errors into the wheel; an editable install uses the checkout's."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class IncludeData(BuildHookInterface):
    """Adds what lives beside the package."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Include them in a standard build only: otherwise a second `forge` folder appears among the packages."""
        if version == "standard":
            build_data["force_include"]["migrations"] = "forge/_migrations"
            build_data["force_include"]["examples"] = "forge/_examples"
            build_data["force_include"]["docs/errors.md"] = "forge/_docs/errors.md"
