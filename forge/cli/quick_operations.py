"""Answers `op list` and `op show` of the catalogue from a file that `docs/generate.py` writes from the code.

In a workspace with own operations, and where anything is unusual, the whole command answers.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCUMENTS = Path(__file__).with_name("operations.json")
JSON = "--json"
OWN = "own_"
"""Beginning of the names of own operations."""


def quick_operation(arguments: Sequence[str]) -> bool:
    """Print the answer to the arguments of `forge op`; return False if the whole command must answer."""
    plain = [word for word in arguments if word != JSON]
    if len(arguments) - len(plain) > 1 or any(word.startswith("-") for word in plain) or not _is_usual():
        return False
    documents: list[dict[str, Any]] = json.loads(DOCUMENTS.read_bytes())  # Any: JSON documents
    if plain == ["list"]:
        from forge.cli.operation_tables import show_operations

        show_operations(documents, [], as_json=JSON in arguments)
        return True
    found = [one for one in documents if plain == ["show", one["op"]]]
    if found:
        from forge.cli.operation_tables import show_operation

        show_operation(found[0], as_json=JSON in arguments)
    return bool(found)


def _is_usual() -> bool:
    """Return whether there is no workspace here, or one in order and without own operations."""
    from forge.app.at_head import at_head
    from forge.app.stored.ledger_ids import known_names
    from forge.app.user.home import find_home
    from forge.errors import ForgeError

    try:
        home = find_home(None)
    except ForgeError:
        return True
    with at_head(home) as found:
        return found is not None and not any(name.startswith(OWN) for name in known_names("op", str(home)))
