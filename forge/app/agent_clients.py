"""Sets up coding agents: the entry that makes a client start `forge mcp`, and the skill in the client's folder.

Nothing of another program is replaced: an entry called `forge` that isn't ours is refused.
"""

import difflib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from forge.app.user.user_paths import make_parent, read_regular
from forge.errors import AlreadyDecided, UnknownName, UsageError

ClientName = Literal["claude", "codex", "cursor", "vscode", "opencode"]
CLIENTS: tuple[ClientName, ...] = get_args(ClientName)
ENTRY = "forge"
"""Name of the entry in a client's configuration."""
SKILL = "forge-kernels"
LARGEST_CONFIGURATION = 1 << 20
"""Largest configuration of a client that is read, in bytes. Chosen; it bounds the memory that another program's file
can take."""
Document = dict[str, Any]  # Any: a JSON document


@dataclass(frozen=True)
class Client:
    """Where a coding agent keeps its configuration and skills, in a project's folder."""

    file: str
    skills: str
    section: str
    """Field of the configuration with the servers."""
    entry: Callable[[list[str]], Document]
    """Function that returns the entry for a command."""


def _command(command: list[str]) -> Document:
    return {"command": command[0], "args": command[1:]}


def _typed(command: list[str]) -> Document:
    return {"type": "stdio", **_command(command)}


def _local(command: list[str]) -> Document:
    return {"type": "local", "command": command, "enabled": True}


KNOWN: dict[ClientName, Client] = {
    "claude": Client(".mcp.json", ".claude/skills", "mcpServers", _typed),
    "codex": Client(".codex/config.toml", ".agents/skills", "mcp_servers", _command),
    "cursor": Client(".cursor/mcp.json", ".cursor/skills", "mcpServers", _command),
    "vscode": Client(".vscode/mcp.json", ".github/skills", "servers", _typed),
    "opencode": Client("opencode.json", ".opencode/skills", "mcp", _local),
}
"""Client -> its files."""


@dataclass(frozen=True)
class Change:
    """A file as it is and as it is to be."""

    path: Path
    before: str | None
    after: str

    @property
    def difference(self) -> str:
        """Return the unified difference; empty if nothing changes."""
        before = [] if self.before is None else self.before.splitlines(keepends=True)
        name = str(self.path)
        return "".join(difflib.unified_diff(before, self.after.splitlines(keepends=True), name, name))


def planned(name: str, project: Path, home: Path) -> list[Change]:
    """Return what setting a client up would write into a project; raise AlreadyDecided over another's entry.

    Raises UnknownName for a client that Forge doesn't know.
    """
    known: dict[str, ClientName] = {one: one for one in CLIENTS}
    if name not in known:
        raise UnknownName("client", name, list(known))
    client = KNOWN[known[name]]
    command = [sys.executable, "-m", "forge", "mcp", "--home", str(home.resolve())]
    path = project / client.file
    before = _text(path)
    entry = client.entry(command)
    after = _toml(path, before, entry) if path.suffix == ".toml" else _json(path, before, client.section, entry)
    changes = [Change(path, before, after)]
    for relative, text in skill_files().items():
        target = project / client.skills / SKILL / relative
        found = _text(target)
        if found is not None and found != text and not _is_ours(target, found):
            raise _taken(target)
        changes.append(Change(target, found, text))
    return [one for one in changes if one.before != one.after]


def write(changes: list[Change]) -> None:
    """Write the text after each change to its file, and make missing folders."""
    for one in changes:
        make_parent(one.path)
        one.path.write_text(one.after, encoding="utf-8")


def skill_files() -> dict[str, str]:
    """Return the skill's files by their place in its folder."""
    root = Path(__file__).parents[1] / "mcp" / "skill" / SKILL
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.md"))
    }


def _text(path: Path) -> str | None:
    try:
        return read_regular(path, limit_bytes=LARGEST_CONFIGURATION).decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{str(path)!r} can't be read ({error}): expected the configuration of a client") from error


def _json(path: Path, before: str | None, section: str, entry: Document) -> str:
    """Return a JSON configuration with the entry; other entries stay."""
    try:
        document = json.loads(before) if before and before.strip() else {}
        servers = document.setdefault(section, {})
        found = servers.get(ENTRY)
    except (ValueError, AttributeError, RecursionError) as error:
        raise UsageError(f"{str(path)!r} isn't a JSON object ({error}): correct it first, or use --print") from error
    if found is not None and found != entry and not _starts_forge(found):
        raise _taken(path)
    if found == entry and before is not None:
        return before
    servers[ENTRY] = entry
    return json.dumps(document, indent=2) + "\n"


def _toml(path: Path, before: str | None, entry: Document) -> str:
    """Return a TOML configuration with the entry at its end; a standing entry of ours is kept where it is."""
    try:
        found = tomllib.loads(before or "").get("mcp_servers", {}).get(ENTRY)
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{str(path)!r} isn't TOML ({error}): correct it first, or use --print") from error
    if found == entry and before is not None:
        return before
    if found is not None:
        if not _starts_forge(found):
            raise _taken(path)
        raise AlreadyDecided(
            f"{str(path)!r} has an entry {ENTRY!r} for another workspace: remove it there, then repeat",
            hint="forge mcp install --help",
        )
    table = f"[mcp_servers.{ENTRY}]\ncommand = {json.dumps(entry['command'])}\nargs = {json.dumps(entry['args'])}\n"
    return table if not before else f"{before.rstrip()}\n\n{table}"


def _starts_forge(found: object) -> bool:
    """Return whether an entry is one that this function wrote, perhaps for another workspace."""
    told = json.dumps(found) if isinstance(found, Mapping) else ""
    return bool(re.search(r'"-m", "forge", "mcp"', told))


def _is_ours(path: Path, text: str) -> bool:
    return path.name != "SKILL.md" or f"name: {SKILL}\n" in text


def _taken(path: Path) -> AlreadyDecided:
    return AlreadyDecided(
        f"{str(path)!r} has an entry {ENTRY!r} that Forge didn't write: nothing was changed; rename it first",
        hint="forge mcp install --help",
    )
