"""Tokens: shown once, kept as a digest, accepted by one workspace until they expire or are revoked."""

import shutil
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from forge.app.access import tokens
from forge.app.access.tokens import AGENT_WITHOUT_TOKEN, Caller, find_caller
from forge.app.solve.composing import COMPOSER
from forge.app.workspace import Workspace, now
from forge.authors import KIND_NAMES
from forge.authors.kinds import KINDS
from forge.errors import ActorForbidden, IntegrityError
from tests.cli.asking import ask, history, ledger_stands


def granted(home: Path, name: str = "ada", *more: object, scope: str = "author") -> dict[str, str]:
    found: dict[str, str] = ask("token", "add", name, "--scope", scope, "--home", home, "--json", *more).document
    return found


def caller(home: Path, token: str) -> Caller | None:
    with Workspace.open(home, read_only=True) as workspace:
        return find_caller(workspace, token)


def test_a_token_is_shown_once_and_only_its_digest_is_kept(empty: Path) -> None:
    made = granted(empty, "ada", "--expires", "30d")
    assert caller(empty, made["token"]) == Caller("author", "ada")
    assert Caller("author", "ada").actor == "agent:ada"
    assert Caller("operator", "ada").actor == "cli:ada"
    kept = [path for path in empty.rglob("*") if path.is_file() and made["token"].encode() in path.read_bytes()]
    assert kept == []
    (file,) = (empty / "tokens").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (event,) = [one for one in history(empty) if one["type"] == "TokenGranted"]
    assert event["payload"]["token_sha256"] == made["token_sha256"] == file.stem
    assert event["actor"].startswith("cli:")
    assert ledger_stands(empty)


def test_a_revoked_an_expired_and_an_unknown_token_are_refused(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, eve = granted(empty), granted(empty, "eve", "--expires", "1h", scope="operator")
    assert caller(empty, eve["token"]) == Caller("operator", "eve")
    assert ask("token", "revoke", "ada", "--home", empty).status == 0
    assert caller(empty, ada["token"]) is None
    monkeypatch.setattr(tokens, "now", lambda: now() + timedelta(hours=2))
    assert caller(empty, eve["token"]) is None
    for unknown in ("", "forge_", ada["token"][:-1], ada["token"] * 50, "forge_\udc80"):
        assert caller(empty, unknown) is None
    with Workspace.open(empty) as workspace:
        states = {one["name"]: one["state"] for one in tokens.all_tokens(workspace)}
    assert states == {"ada": "revoked", "eve": "expired"}


def test_a_revoked_token_stays_refused_if_its_file_comes_back(empty: Path) -> None:
    made = granted(empty)
    (file,) = (empty / "tokens").iterdir()
    content = file.read_bytes()
    ask("token", "revoke", "ada", "--home", empty)
    assert not file.exists()
    file.write_bytes(content)
    file.chmod(0o600)
    assert caller(empty, made["token"]) is None


def test_another_workspace_and_a_copy_of_the_ledger_refuse_a_token(empty: Path, tmp_path: Path) -> None:
    made = granted(empty)
    copy = shutil.copytree(empty, tmp_path / "copy", ignore=shutil.ignore_patterns("tokens"))
    assert caller(copy, made["token"]) is None
    ask("init", tmp_path / "other")
    shutil.copytree(empty / "tokens", tmp_path / "other" / "tokens")
    assert caller(tmp_path / "other", made["token"]) is None


def test_a_file_that_others_can_read_or_that_was_changed_is_refused(empty: Path) -> None:
    made = granted(empty)
    (file,) = (empty / "tokens").iterdir()
    file.chmod(0o644)
    with pytest.raises(IntegrityError, match="expected mode 600"):
        caller(empty, made["token"])
    file.chmod(0o600)
    file.write_bytes(file.read_bytes().replace(b"author", b"owner"))
    with pytest.raises(IntegrityError, match="can't be read"):
        caller(empty, made["token"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("Ada", "--scope", "author"), "bad name 'Ada'"),
        (("mcp", "--scope", "author"), "and none of"),
        (("a b", "--scope", "author"), "bad name"),
        (("ada", "--scope", "owner"), "expected one of author, operator"),
        (("ada", "--scope", "author", "--expires", "soon"), "bad lifetime 'soon'"),
        (("ada", "--scope", "author", "--expires", "0d"), "bad lifetime '0d'"),
    ],
)
def test_bad_requests_for_a_token_name_what_was_expected(empty: Path, arguments: tuple[str, ...], said: str) -> None:
    refused = ask("token", "add", *arguments, "--home", empty)
    assert refused.status == 2
    assert said in refused.error
    assert not list((empty).glob("tokens/*"))


def test_a_name_is_free_again_only_after_its_token_was_revoked(empty: Path) -> None:
    granted(empty)
    assert "there is a token 'ada' already" in ask("token", "add", "ada", "--scope", "author", "--home", empty).error
    assert "unknown token 'eve'" in ask("token", "revoke", "eve", "--home", empty).error
    ask("token", "revoke", "ada", "--home", empty)
    assert granted(empty)["name"] == "ada"


def test_of_commands_at_the_same_time_one_gets_the_name(empty: Path) -> None:
    command = [sys.executable, "-m", "forge", "token", "add", "ada", "--scope", "author", "--home", str(empty)]
    asked = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    said = [one.communicate()[1] for one in asked]
    assert sorted(one.returncode for one in asked) == [0, 2, 2, 2, 2, 2], said
    assert sum("there is a token 'ada' already" in one for one in said) == 5


def test_a_name_that_several_tokens_have_is_revoked_with_all_of_them(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:  # an earlier Forge let two commands at the same time take one name
        earlier.setattr(tokens, "_free_name", lambda _, name: name)
        both = [granted(empty)["token"], granted(empty)["token"]]
    assert all(caller(empty, one) for one in both)
    assert ask("token", "revoke", "ada", "--home", empty).status == 0
    assert [caller(empty, one) for one in both] == [None, None]
    assert ledger_stands(empty)


def test_no_token_has_the_name_of_one_of_our_own_authors(empty: Path) -> None:
    assert tuple(KINDS) == KIND_NAMES
    own = {*KIND_NAMES, COMPOSER.removeprefix("agent:"), AGENT_WITHOUT_TOKEN.name}
    assert own <= tokens.TAKEN_NAMES, "its holder would own their runs"
    assert ask("token", "add", "model", "--scope", "author", "--home", empty).status == 2


def test_only_a_person_grants_a_token(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forge.app.workspace.command_line_actor", lambda: "agent:search")
    with Workspace.open(empty) as workspace, pytest.raises(ActorForbidden, match="TokenGranted"):
        tokens.grant_token(workspace, "ada", untrusted_scope="operator", untrusted_lifetime=None)
    assert not list((empty / "tokens").iterdir())
