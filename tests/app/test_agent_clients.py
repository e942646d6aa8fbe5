"""Setting a coding agent up: the difference is shown, another program's entry stays, and it can be repeated."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from forge.app.agent_clients import CLIENTS, KNOWN, skill_files
from tests.cli.asking import ask


def entry(project: Path, client: str) -> dict[str, object]:
    """The entry of a client's configuration, as the client reads it."""
    known = KNOWN[client]  # type: ignore[index]
    text = (project / known.file).read_text()
    document = tomllib.loads(text) if known.file.endswith(".toml") else json.loads(text)
    found: dict[str, object] = document[known.section]["forge"]
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_set_up_once(client: str, empty: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    asked = ("mcp", "install", "--client", client, "--project", project, "--home", empty)
    printed = ask(*asked, "--print")
    assert printed.status == 0
    assert "SKILL.md" in printed.out
    assert list(project.iterdir()) == []
    written = ask(*asked, "--yes")
    assert (written.status, written.out) == (0, printed.out)
    command = json.dumps(entry(project, client))
    assert '"-m", "forge", "mcp", "--home"' in command
    assert str(empty) in command
    skill = project / KNOWN[client].skills / "forge-kernels"  # type: ignore[index]
    assert {path.name for path in skill.rglob("*.md")} == {"SKILL.md", "files.md", "refusals.md"}
    again = ask(*asked, "--yes")
    assert (again.status, again.out) == (0, "")


@pytest.mark.parametrize("client", CLIENTS)
def test_what_others_wrote_stays(client: str, empty: Path, tmp_path: Path) -> None:
    known = KNOWN[client]  # type: ignore[index]
    path = tmp_path / known.file
    path.parent.mkdir(parents=True, exist_ok=True)
    asked = ("mcp", "install", "--client", client, "--project", tmp_path, "--home", empty, "--yes")
    is_toml = path.suffix == ".toml"
    other = (
        '# mine\n[mcp_servers.other]\ncommand = "x"\n'
        if is_toml
        else json.dumps({known.section: {"other": {"a": 1}}})
    )
    path.write_text(other)
    assert ask(*asked).status == 0
    text = path.read_text()
    assert "other" in text
    assert not is_toml or text.startswith(other)
    taken = (
        '[mcp_servers.forge]\ncommand = "x"\n'
        if is_toml
        else json.dumps({known.section: {"forge": {"command": "x"}}})
    )
    path.write_text(taken)
    refused = ask(*asked)
    assert (refused.status, "that Forge didn't write" in refused.error) == (1, True)
    assert path.read_text() == taken
    path.write_text("{[")
    assert ask(*asked).status == 2
    assert path.read_text() == "{["


def test_an_unknown_client_is_named(empty: Path) -> None:
    assert "expected one of" in ask("mcp", "install", "--client", "ed", "--home", empty, "--print").error


def test_the_skill_has_the_form_of_agent_skills() -> None:
    files = skill_files()
    head = re.fullmatch(r"---\nname: (.*)\ndescription: (.*)\n---\n(.*)", files["SKILL.md"], re.DOTALL)
    assert head is not None
    assert head[1] == "forge-kernels"
    assert 1 <= len(head[2]) <= 1024
    assert len(head[3].splitlines()) < 500
    for target in re.findall(r"\]\(([^)]+)\)", head[3]):
        assert target in files
