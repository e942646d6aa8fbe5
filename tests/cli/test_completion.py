"""A shell completes commands, options, values and ids, without the parser; paths are left to the shell."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forge.app.stored.ledger_ids import known_names
from forge.cli.completing import TABLE, completed
from tests.cli.asking import ask
from tests.ledger.forging import forge


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ru", ["run"]),
        ("run sh", ["show"]),
        ("run list --sta", ["--state"]),
        ("run list --state pro", ["promoted", "prompt_ready"]),
        ("run list --sort t", ["task"]),
        ("lookup --op rms", ["rmsnorm", "rmsnorm_strided"]),
        ("lookup --dtype=b", ["--dtype=bf16"]),
        ("task create --op rmsnorm --shape ", ["batch=", "hidden_size="]),
        ("explain TOO_S", ["TOO_SLOW"]),
        ("completion z", ["zsh"]),
        ("ledger key sh", ["show"]),
        ("ledger k", ["key"]),
        ("run list --json --js", []),
        ("check kernel", []),
        ("no such command ", []),
        ("run list --state promoted x", []),
    ],
)
def test_what_a_word_may_become(line: str, found: list[str]) -> None:
    assert completed(line.split(" ")) == found


def test_ids_are_those_of_the_workspace_that_is_named(open_workspace: Path) -> None:
    run = ask("run", "list", "--home", open_workspace, "--json").document[0]
    home = ["--home", str(open_workspace)]
    assert completed(["run", "show", *home, ""]) == sorted([run["run_id"], "last"])
    assert completed(["verify", run["run_id"][:9], *home][:2] + home + [run["run_id"][:9]]) == []
    assert completed(["verify", *home, run["run_id"][:9]]) == [run["run_id"]]
    assert completed(["run", "open", *home, "cpp"]) == [run["task_id"]]
    assert set(completed(["pipeline", *home, ""])) == {run["run_id"], run["task_id"], "last"}
    assert completed(["pipeline", *home, run["run_id"], ""]) == []


def test_a_place_without_a_workspace_has_no_ids(tmp_path: Path) -> None:
    assert completed(["run", "show", "--home", str(tmp_path), ""]) == ["last"]
    (tmp_path / "kernel_registry.db").write_bytes(b"no database")
    assert known_names("run", str(tmp_path)) == []


def test_a_name_that_a_shell_would_obey_is_never_offered(open_workspace: Path, tmp_path: Path) -> None:
    from tests.cli.asking import copied

    home = copied(open_workspace, tmp_path / "home")
    (run_id,) = known_names("run", str(home))
    forge(home / "kernel_registry.db", lambda _seq, _kind, text: text.replace(run_id, "$(rm -rf x)"))
    assert known_names("run", str(home)) == []


def test_the_table_has_every_command_with_its_options_and_no_other() -> None:
    from forge.cli import command_tree

    def commands(
        command: Any, path: str
    ) -> Iterator[tuple[str, set[str]]]:  # Any: Typer's command classes are private
        children = getattr(command, "commands", {})
        if not children:
            options = (one for one in command.params if one.param_type_name == "option")
            yield path, {name for one in options for name in one.opts}
        for name, child in children.items():
            if child.hidden:
                continue
            yield from commands(child, f"{path} {name}".strip())

    table = json.loads(TABLE.read_bytes())["commands"]
    assert {path: set(one["options"]) for path, one in table.items()} == dict(commands(command_tree(), ""))


def test_bash_completes_a_run_with_the_script_that_is_printed(open_workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "forge").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forge "$@"\n')
    (tmp_path / "forge").chmod(0o755)
    script = tmp_path / "completion.bash"
    script.write_text(ask("completion", "bash").out)
    asked = f"""
        source {script}
        COMP_WORDS=(forge run show "") COMP_CWORD=3
        _forge_completion
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    where = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "FORGE_HOME": str(open_workspace)}
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True, env=where)
    (run_id,) = known_names("run", str(open_workspace))
    assert done.stdout.split() == sorted([run_id, "last"])


def test_a_completion_loads_neither_the_parser_nor_the_models() -> None:
    script = (
        "import sys; from forge.cli.completing import completed; completed(['run', 'show', '']); "
        "print(sorted({'pydantic', 'typer', 'torch', 'forge.events.every'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
