"""Every command that a page shows exists, with the options that it is shown with."""

import ast
import re
import shlex

import pytest

from forge.cli import command_tree
from tests.cli.asking import ask
from tests.docs.markdown import ROOT, blocks, read


def shown():
    """(where, words) of each `forge` command in a block of shell."""
    for block in blocks("sh"):
        for line in block.text.replace("\\\n", " ").splitlines():
            for part in line.split("&&"):
                words = shlex.split(part, comments=True)
                if words and words[0] == "forge":
                    yield f"{block}", words[1:]


def resolved(words):
    """The command that the words name, its path, and the words that follow."""
    command, path = command_tree(), []
    while words and words[0] in getattr(command, "commands", {}):
        command, path, words = command.commands[words[0]], [*path, words[0]], words[1:]
    return command, path, words


@pytest.mark.parametrize(
    ("where", "words"), list(shown()), ids=lambda value: value if isinstance(value, str) else None
)
def test_a_shown_command_exists_with_its_options(where, words):
    command, path, rest = resolved(words)
    whole = not getattr(command, "commands", {}) or command.invoke_without_command
    assert whole, f"{where}: forge {' '.join(words)} isn't a whole command"
    known = {option for parameter in command.params for option in parameter.opts}
    assert [word for word in rest if word.startswith("--") and word not in known] == [], where
    given = {word for word in rest if word.startswith("--")}
    needed = {one.opts[0] for one in command.params if one.required and one.param_type_name == "option"}
    assert needed <= given, f"{where}: forge {' '.join(path)} needs {needed - given}"


def hinted():
    """(where, words) of each `forge` command that an error suggests; `0` stands for each value that is filled in.

    A class of errors suggests one by `next_step`.
    """
    for path in sorted((ROOT / "forge").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            of_a_class = isinstance(call, ast.Assign) and ast.unparse(call.targets[0]) == "next_step"
            if not of_a_class and (not isinstance(call, ast.keyword) or call.arg not in ("hint", "listed_by")):
                continue
            for node in (call.value, *ast.walk(call.value)):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                text = "".join(str(one.value) if isinstance(one, ast.Constant) else "0" for one in parts)
                found = re.match(r"forge ([a-z][^;,]*)", text)
                if found is not None:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", found[1].split()


@pytest.mark.slow
def test_each_command_that_an_error_suggests_exists_with_its_options():
    suggested = list(hinted())
    assert len(suggested) > 100
    for where, words in suggested:
        command, path, rest = resolved(words)
        assert path, f"{where}: forge {' '.join(words)}"
        unknown = getattr(command, "commands", {}) and rest and not rest[0].startswith("--")
        assert not unknown, f"{where}: forge {' '.join(words)}"
        assert "--help" in rest or not getattr(command, "commands", {}) or command.invoke_without_command, where
        known = {"--help", *(option for parameter in command.params for option in parameter.opts)}
        assert [word for word in rest if word.startswith("--") and word not in known] == [], where


def test_the_readme_shows_six_commands_for_a_first_kernel():
    section = read("README.md").split("in six commands")[1].split("\n## ")[0]
    assert section.count("\nforge ") == 6


@pytest.mark.parametrize("path", sorted({tuple(resolved(words)[1]) for _, words in shown()}))
def test_a_shown_command_has_help(path):
    answer = ask(*path, "--help")
    assert answer.status == 0
    assert "Example: forge" in " ".join(answer.out.split())


def test_every_make_target_that_a_page_shows_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for block in blocks("sh"):
        for line in block.text.splitlines():
            if line.startswith("make "):
                assert f"\n{line.split()[1]}:" in makefile, f"{block}: {line}"


def test_the_readme_names_the_commands_that_ci_runs():
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for line in run.splitlines():
        if line.startswith("make "):
            assert f"`{line}`" in read("README.md")
