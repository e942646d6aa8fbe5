"""Puts migrations and examples into the wheel; an editable install finds them in the checkout instead."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class IncludeData(BuildHookInterface):
    """Adds the two folders that live beside the package."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Include them in a standard build only: otherwise a second `forge` folder appears among the packages."""
        if version == "standard":
            build_data["force_include"]["migrations"] = "forge/_migrations"
            build_data["force_include"]["examples"] = "forge/_examples"
