"""The events: a closed union of facts, one module per phase.

`every` lists them. It is imported at the first use of a name, because its hundred models take longer to load than
most answers.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge.events.every import *  # noqa: F403 (its `__all__` is the one list of names)
else:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(import_module("forge.events.every"), name)
