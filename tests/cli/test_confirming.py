"""What is final is asked about on a terminal, and only there."""

import io
import sys
from pathlib import Path

import pytest

from tests.cli.asking import Answer, ask, history

FINAL = (
    ("kernel", "revoke", "no_kernel_v1", "--reason", "a reason"),
    ("kernel", "deprecate", "no_kernel_v1", "--reason", "a reason"),
    ("benchmark", "invalidate", "1", "--reason", "a reason"),
    ("ledger", "rotate-key"),
)


class Terminal(io.StringIO):
    """A stdin at which a person types, and which shows what is typed."""

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:
        line = super().readline(size)
        sys.stderr.write(line)
        return line


@pytest.fixture(params=FINAL, ids=" ".join)
def final(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


def typed(monkeypatch: pytest.MonkeyPatch, text: str, *command: object) -> Answer:
    monkeypatch.setattr(sys, "stdin", Terminal(text))
    return ask(*command)


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_without_a_yes_nothing_is_recorded(
    final: tuple[str, ...], answer: str, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = history(empty)
    refused = typed(monkeypatch, answer, *final, "--home", empty)
    assert refused.status == 1
    assert "It can't be undone" in refused.err
    assert "nothing was recorded" in refused.err
    assert refused.last.endswith("--yes")
    assert history(empty) == before


@pytest.mark.parametrize(("answer", "more"), [("y\n", ()), ("", ("--yes",))])
def test_a_yes_lets_the_command_decide(
    final: tuple[str, ...], answer: str, more: tuple[str, ...], empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = typed(monkeypatch, answer, *final, *more, "--home", empty)
    assert "nothing was recorded" not in decided.err
    assert decided.status == (0 if final == ("ledger", "rotate-key") else 2)


def test_a_script_is_not_asked(final: tuple[str, ...], empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert "It can't be undone" not in ask(*final, "--home", empty).err
