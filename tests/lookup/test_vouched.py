"""A reader that pins the ledger's key: what it refuses, at the start and at every refresh."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forge.errors import ProofRefused, UsageError
from forge.ledger.signatures.signing import SigningKey, signed_note
from forge.lookup import Registry
from forge.proof.publication import publication_text
from tests.lookup.asking import ASK, publish
from tests.projections.histories import LEDGER_ID, History, opened, promoted

NAME = f"test/{LEDGER_ID}"
KEY, EVE = SigningKey(NAME, bytes(32)), SigningKey(NAME, bytes([1] * 32))
POINTER = Path("kernel_registry") / "current.json"


def sign(workspace: Path, *, by: SigningKey = KEY, **other: object) -> None:
    """Put the note into the pointer, as a publisher who has a key does."""
    pointer = json.loads((workspace / POINTER).read_bytes())
    said = {
        "seq": pointer["ledger"]["seq"],
        "event_hash": pointer["ledger"]["event_hash"],
        "sha256": pointer["sha256"],
    }
    note = signed_note(publication_text(by.name, **{**said, **other}), [by])
    (workspace / POINTER).write_text(json.dumps({**pointer, "note": note}))


@pytest.fixture
def history() -> History:
    history = opened()
    promoted(history)
    return history


@pytest.fixture
def signed(history: History, tmp_path: Path) -> Path:
    publish(history, tmp_path)
    sign(tmp_path)
    return tmp_path


def test_what_the_key_signed_answers_and_goes_on_answering(signed: Path, history: History) -> None:
    registry = Registry.open(signed, key=KEY.verifier)
    assert registry.lookup(**ASK).kernel is not None
    promoted(history)
    publish(history, signed)
    assert not registry.refresh(), "what isn't signed isn't taken up"
    assert "isn't signed" in str(registry.health().error)
    assert registry.lookup(**ASK).kernel is not None
    sign(signed)
    assert registry.refresh()
    assert registry.health().ok


def test_an_older_publication_is_not_taken_up_again(signed: Path, history: History, tmp_path: Path) -> None:
    old = shutil.copytree(signed / "kernel_registry", tmp_path / "old")
    promoted(history)
    publish(history, signed)
    sign(signed)
    registry = Registry.open(signed, key=KEY.verifier)
    shutil.copytree(old, signed / "kernel_registry", dirs_exist_ok=True)
    assert not registry.refresh()
    assert "went back" in str(registry.health().error)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda home: publish_unsigned(home), "isn't signed"),
        (lambda home: sign(home, by=EVE), "doesn't vouch"),
        (lambda home: sign(home, seq=1), "another publication"),
        (lambda home: sign(home, sha256="0" * 64), "another publication"),
        (lambda home: sign(home, event_hash="0" * 64), "another publication"),
        (lambda home: note(home, 7), "isn't signed"),
        (lambda home: note(home, "garbage"), "doesn't vouch"),
        (lambda home: note(home, "\ud800"), "doesn't vouch"),
        (lambda home: note(home, signed_note(f"{NAME}\n3\n{'A' * 43}=\n", [KEY])), "another publication"),
    ],
    ids=[
        "unsigned",
        "other key",
        "other event",
        "other snapshot",
        "other hash",
        "number",
        "text",
        "half",
        "checkpoint",
    ],
)
def test_what_the_key_did_not_sign_is_refused_with_the_next_step(signed: Path, change, said: str) -> None:
    change(signed)
    with pytest.raises(ProofRefused, match=said) as refused:
        Registry.open(signed, key=KEY.verifier)
    assert refused.value.hint == "forge ledger checkpoint"
    assert Registry.open(signed).lookup(**ASK).kernel is not None, "who pins no key believes what is published"


def test_a_snapshot_and_pointer_rewritten_together_are_refused(signed: Path, history: History) -> None:
    """The forger publishes another snapshot and keeps the note of the real one."""
    kept = json.loads((signed / POINTER).read_bytes())["note"]
    promoted(history)
    publish(history, signed)
    note(signed, kept)
    with pytest.raises(ProofRefused, match="another publication"):
        Registry.open(signed, key=KEY.verifier)


def test_a_key_of_another_log_and_what_is_no_key(signed: Path, tmp_path: Path) -> None:
    other = SigningKey("test/other", bytes(32))
    sign(signed, by=other)
    with pytest.raises(ProofRefused, match="another publication"):
        Registry.open(signed, key=other.verifier)
    (tmp_path / "vkey").write_text(KEY.verifier + "\n")
    sign(signed)
    Registry.open(signed, key=tmp_path / "vkey")
    for bad in ("", "nothing", KEY.verifier[:-8] + "AAAAAAA="):
        with pytest.raises(UsageError):
            Registry.open(signed, key=bad)


def test_it_needs_the_standard_library_alone(signed: Path) -> None:
    program = f"""
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "cryptography":
            raise ImportError(name)
sys.meta_path.insert(0, Without())
import forge.lookup
assert "forge.proof" not in sys.modules
from forge.errors import ProofRefused
registry = forge.lookup.Registry.open({str(signed)!r}, key={KEY.verifier!r})
assert registry.lookup(**{ASK!r}).kernel is not None
try:
    forge.lookup.Registry.open({str(signed)!r}, key={EVE.verifier!r})
except ProofRefused:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


def publish_unsigned(workspace: Path) -> None:
    pointer = json.loads((workspace / POINTER).read_bytes())
    del pointer["note"]
    (workspace / POINTER).write_text(json.dumps(pointer))


def note(workspace: Path, value: object) -> None:
    pointer = json.loads((workspace / POINTER).read_bytes())
    (workspace / POINTER).write_text(json.dumps({**pointer, "note": value}))
