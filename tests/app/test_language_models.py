"""Language models over real HTTP: each wire form, streamed, and every way in which an answer can be bad."""

import base64
import dataclasses
import json
from pathlib import Path

import pytest

from forge.app.sessions.language_models import (
    MOST_ANSWER_BYTES,
    LanguageModel,
    parse_model,
    parse_url,
    proposed_price,
    read_key,
)
from forge.app.sessions.model_exchange import ModelUnanswered
from forge.app.sessions.pictures import PICTURE_BYTES, read_picture
from forge.domain.authoring import Ask
from forge.errors import UnknownName, UsageError
from tests.app.model_server import Refuse, Reply, Say, serving

pytestmark = pytest.mark.slow  # it imports the clients of all providers
ASK = Ask(model="openai:m", prompt="write a kernel", most_tokens=100, temperature=0.5)
KEY = "sk-very-secret"
PROVIDERS = (("openai", "/v1"), ("openai-responses", "/v1"), ("anthropic", ""))


def asked(provider: str, url: str, *, limit_s: float = 20) -> LanguageModel:
    return LanguageModel(f"{provider}:m", KEY, url, pause=lambda _: None, limit_s=limit_s)


@pytest.mark.parametrize(("provider", "end"), PROVIDERS)
def test_an_answer_is_streamed_once_in_each_wire_form_with_its_count_of_tokens(provider: str, end: str) -> None:
    with serving(Say("the whole answer, in pieces", tokens=(7, 9))) as server:
        found = asked(provider, server.url + end).answer(ASK, request_id="s-1")
    assert (found.text, found.prompt_tokens, found.answer_tokens) == ("the whole answer, in pieces", 7, 9)
    ((_, headers, body),) = server.requests
    assert body["stream"] is True
    assert body["temperature"] == 0.5
    assert 100 in (body.get("max_tokens"), body.get("max_completion_tokens"), body.get("max_output_tokens"))
    lowered = {name.lower(): value for name, value in headers.items()}
    assert lowered["x-request-id"] == "s-1"
    assert KEY in (lowered.get("x-api-key"), lowered.get("authorization", "").removeprefix("Bearer "))


NOTHING, UNKNOWN = (0, 0), None
"""Tokens of a request that was refused before any work, and of one that may have been paid for."""
BAD: tuple[tuple[str, Reply, str, tuple[int, int] | None, str], ...] = (
    ("wrong key", Refuse(401, {"error": {"message": f"bad {KEY}"}}), "refused", NOTHING, "refused the key"),
    ("unknown model", Refuse(404), "refused", NOTHING, "knows no model"),
    ("rate limit", Refuse(429), "refused", NOTHING, "too many requests"),
    ("server error", Refuse(500), "unreachable", UNKNOWN, "HTTP 500"),
    ("cut stream", Say("half of an answer", cut=True), "malformed", UNKNOWN, "cut"),
    ("stalled stream", Say("an answer that stalls", stall_s=6), "timeout", UNKNOWN, "no whole answer"),
    ("refusal", Say("no", stop="content_filter"), "refused", (100, 50), "refused to answer"),
    ("no text", Say(" "), "malformed", (100, 50), "no text"),
    ("another page", b"<html>", "malformed", UNKNOWN, "can't be read"),
    ("10 MB", Say("y" * 10_000_000), "malformed", UNKNOWN, f"more than {MOST_ANSWER_BYTES} bytes"),
)


@pytest.mark.parametrize(("provider", "end"), [PROVIDERS[0], PROVIDERS[2]])
@pytest.mark.parametrize(("reply", "cause", "tokens", "said"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_a_bad_answer_has_one_cause_and_what_may_be_paid_for_is_not_lost(
    provider: str, end: str, reply: Reply, cause: str, tokens: tuple[int, int] | None, said: str
) -> None:
    limit_s = 5 if isinstance(reply, Say) and reply.stall_s else 120
    with serving(reply) as server, pytest.raises(ModelUnanswered) as failed:
        asked(provider, server.url + end, limit_s=limit_s).answer(ASK, request_id="s-1")
    assert (failed.value.cause, failed.value.tokens) == (cause, tokens)
    assert said in failed.value.detail
    assert KEY not in failed.value.detail
    assert len(server.requests) == 1, "nothing is sent twice"


def test_an_answer_without_a_count_of_tokens_costs_the_worst_case() -> None:
    with serving(Say("no usage", tokens=(0, 0))) as server:
        found = asked("openai", f"{server.url}/v1").answer(ASK, request_id="s-1")
    assert (found.prompt_tokens, found.answer_tokens) == (len(ASK.prompt), ASK.most_tokens)


def test_a_server_that_is_not_there_costs_nothing() -> None:
    with serving() as server:
        gone = server.url
    with pytest.raises(ModelUnanswered) as failed:
        asked("openai", gone).answer(ASK, request_id="s-1")
    assert (failed.value.cause, failed.value.tokens) == ("unreachable", NOTHING)


def test_after_a_rate_limit_the_next_request_waits() -> None:
    pauses: list[float] = []
    with serving(Refuse(429), Refuse(429), Say("at last"), Say("again")) as server:
        model = dataclasses.replace(asked("openai", f"{server.url}/v1"), pause=pauses.append)
        for _ in range(2):
            with pytest.raises(ModelUnanswered):
                model.answer(ASK, request_id="s-1")
        assert model.answer(ASK, request_id="s-2").text == "at last"
        model.answer(ASK, request_id="s-3")
    assert pauses == [1.0, 4.0]


def test_a_model_a_url_and_a_key_are_read_strictly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_model("openai:a:b").model == "a:b"
    for bad in ("gpt", "openai:", "openai:a b"):
        with pytest.raises(UsageError, match="expected provider:model"):
            parse_model(bad)
    with pytest.raises(UnknownName):
        parse_model("elsewhere:m")
    for url in ("ftp://x", "http://user:key@x/v1", "http://x/?key=1", "x"):
        with pytest.raises(UsageError, match="expected"):
            parse_url(url)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="no key for provider 'openai': expected OPENAI_API_KEY"):
        read_key("openai", None, local=False)
    assert read_key("openai", None, local=True) == "none"
    (tmp_path / "key").write_text("abc\n")
    assert read_key("openai", tmp_path / "key", local=False) == "abc"
    (tmp_path / "key").write_text("a\nb")
    with pytest.raises(UsageError, match="bad key"):
        read_key("openai", tmp_path / "key", local=False)
    with pytest.raises(UsageError, match="can't read the key's file"):
        read_key("openai", tmp_path / "none", local=False)


def test_a_price_is_proposed_for_a_known_model_alone() -> None:
    found = proposed_price("openai:gpt-4o", base_url=None)
    assert found is not None
    assert found.answer_micro_dollars > found.prompt_micro_dollars > 0
    assert proposed_price("openai:no-such-model-1", base_url=None) is None
    assert proposed_price("openai:gpt-4o", base_url="http://127.0.0.1/v1") is None, "a relay's price isn't known"


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and more").decode()


@pytest.mark.parametrize(("provider", "end"), PROVIDERS)
def test_a_picture_goes_with_the_prompt_in_each_wire_form(provider: str, end: str) -> None:
    with serving(Say("seen")) as server:
        found = asked(provider, server.url + end).answer(ASK.model_copy(update={"image": PNG}), request_id="s-1")
    assert found.text == "seen"
    sent = json.dumps(server.requests[0][2])
    assert PNG in sent
    assert "image/png" in sent


def test_a_picture_is_a_png_or_a_jpeg_of_a_fit_size(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(base64.b64decode(PNG))
    assert read_picture(str(tmp_path / "a.png")) == PNG
    (tmp_path / "b.png").write_bytes(b"GIF89a")
    (tmp_path / "c.png").write_bytes(base64.b64decode(PNG) + bytes(PICTURE_BYTES))
    for name, why in (("b.png", "expected a PNG or JPEG"), ("c.png", "can't be read"), ("none", "can't be read")):
        with pytest.raises(UsageError, match=why):
            read_picture(str(tmp_path / name))
