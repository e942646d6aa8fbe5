"""Asks language models. This is the only file that touches the library for them, and only at its model boundary.

A request is sent once. What may have been paid for is settled in full: a server's fault, a time-out, a cut stream.
"""

import asyncio
import base64
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from forge.app.sessions.model_exchange import ModelAnswer, ModelUnanswered
from forge.app.sessions.pictures import PICTURES
from forge.domain.authoring import Ask
from forge.domain.budget import MILLION, Price
from forge.errors import EnvironmentUnfit, UnknownName, UsageError
from forge.pipeline.sessions.worst_case import ANSWER_MS

KEYS = {"openai": "OPENAI_API_KEY", "openai-responses": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Provider -> variable of the environment that holds its key. Any server in OpenAI's form is `openai` with a URL."""
MOST_ANSWER_BYTES = 2 * 2**20
"""Size of an answer in bytes, at most. Five files of the largest size that is accepted have a little more."""
ANSWER_S = ANSWER_MS / 1000 - 10
"""Time in seconds after which a request is given up, a little before its reserved time ends."""
KEY_BYTES = 4096
"""Size of a key's file in bytes, at most. A key has some hundred characters."""
LONGEST_DETAIL = 300
"""Number of characters of a provider's words that are recorded. Chosen; the ledger keeps them for ever, and a report
shows them in a few lines."""
PAUSES_S = (1.0, 4.0, 15.0, 60.0)
"""Pauses in seconds after the first, second, ... answer in a row that says too many requests were sent. Chosen; each
is about four times the one before."""
INSTALL = "pip install 'tensorpath-forge[agents]'"


@dataclass(frozen=True)
class ModelName:
    """A model as a person names it: `provider:model`."""

    provider: str
    model: str


def parse_model(untrusted_name: str) -> ModelName:
    """Return the parts of a model's name; raise UsageError or UnknownName."""
    provider, colon, model = untrusted_name.partition(":")
    if not colon or not model or not model.isprintable() or "=" in model or " " in model:
        raise UsageError(f"bad model {untrusted_name[:100]!r}: expected provider:model, such as openai:gpt-5")
    if provider not in KEYS:
        raise UnknownName("provider", provider, list(KEYS))
    return ModelName(provider, model)


def parse_url(untrusted_url: str) -> str:
    """Return a server's address; raise UsageError for one with a key in it, since the address is recorded."""
    parts = urlsplit(untrusted_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"bad URL {untrusted_url[:200]!r}: expected one such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError("the URL has a name, a key or a query in it: expected a plain address, which is recorded")
    return untrusted_url


def read_key(provider: str, key_file: Path | None, *, local: bool) -> str:
    """Return a provider's key from a file or the environment; raise UsageError if there is none.

    `local`: the server's address was given. Most local servers ask for no key.
    """
    if key_file is not None:
        try:
            with key_file.open("rb") as opened:
                key = opened.read(KEY_BYTES).decode(errors="replace").strip()
        except OSError as error:
            raise UsageError(
                f"can't read the key's file {str(key_file)!r}: {error.strerror}; expected a file that you may read"
            ) from error
    else:
        key = os.environ.get(KEYS[provider], "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    if key or key_file is not None:
        raise UsageError("bad key: expected one line of printable characters")
    if local:
        return "none"
    raise UsageError(f"no key for provider {provider!r}: expected {KEYS[provider]} in the environment, or --key-file")


def require_library() -> None:
    """Raise EnvironmentUnfit if the library for language models isn't installed."""
    if find_spec("pydantic_ai") is None:
        raise EnvironmentUnfit("asking language models needs the extra `agents`", hint=INSTALL)


def proposed_price(name: str, *, base_url: str | None) -> Price | None:
    """Return a model's list price, if the library's table has it. A relay's price isn't known."""
    if base_url is not None:
        return None
    from genai_prices import Usage, calc_price  # type: ignore[import-not-found,unused-ignore]  # of the extra

    parsed = parse_model(name)
    try:
        prompt, answer = (
            calc_price(usage, model_ref=parsed.model, provider_id=parsed.provider.partition("-")[0]).total_price
            for usage in (Usage(input_tokens=MILLION), Usage(output_tokens=MILLION))
        )
    except LookupError:
        return None
    return Price(
        model=name, prompt_micro_dollars=round(prompt * MILLION), answer_micro_dollars=round(answer * MILLION)
    )


@dataclass
class LanguageModel:
    """Sends the prompts of one session to its model."""

    name: str
    key: str
    base_url: str | None
    pause: Callable[[float], None]
    """Waits for a number of seconds."""
    limit_s: float = ANSWER_S
    _refused_in_a_row: int = 0

    def answer(self, step: Ask, *, request_id: str) -> ModelAnswer:
        """Return the model's answer; raise ModelUnanswered."""
        self._load()
        if self._refused_in_a_row:
            self.pause(PAUSES_S[min(self._refused_in_a_row, len(PAUSES_S)) - 1])
        try:
            found = asyncio.run(asyncio.wait_for(self._ask(step, request_id), self.limit_s))
        except TimeoutError:
            raise ModelUnanswered("timeout", f"no whole answer in {self.limit_s:.0f} s") from None
        self._refused_in_a_row = 0
        return found

    def _load(self) -> None:
        """Import the library, whose second or two don't count as the provider's time."""
        import pydantic_ai.direct

        if parse_model(self.name).provider == "anthropic":
            import pydantic_ai.models.anthropic
        else:
            import pydantic_ai.models.openai  # noqa: F401  # imported for its time alone

    async def _ask(self, step: Ask, request_id: str) -> ModelAnswer:
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.messages import ModelRequest, UserPromptPart
        from pydantic_ai.settings import ModelSettings

        settings = ModelSettings(max_tokens=step.most_tokens, extra_headers={"X-Request-Id": request_id})
        if step.temperature is not None:
            settings["temperature"] = step.temperature
        # plain text stays plain text on the wire: small servers know no list of parts
        said: Any = step.prompt if step.image is None else [step.prompt, _picture(step.image)]
        messages, size = [ModelRequest(parts=[UserPromptPart(content=said)])], 0
        async with self._client() as client:
            try:
                async with model_request_stream(self._model(client), messages, model_settings=settings) as stream:
                    async for event in stream:
                        size += len(_new_text(event).encode(errors="replace"))
                        if size > MOST_ANSWER_BYTES:
                            detail = f"the answer has more than {MOST_ANSWER_BYTES} bytes"
                            raise ModelUnanswered("malformed", detail)
                    is_chat = parse_model(self.name).provider == "openai"
                    return _finished(stream.get(), step, is_chat=is_chat)
            except _faults() as error:
                self._say(error)

    def _client(self) -> Any:
        """Return the provider's client, which sends each request once."""
        options: dict[str, Any] = {"api_key": self.key, "max_retries": 0, "timeout": self.limit_s}
        if self.base_url is not None:
            options["base_url"] = self.base_url
        if parse_model(self.name).provider == "anthropic":
            from anthropic import AsyncAnthropic

            return AsyncAnthropic(**options)
        from openai import AsyncOpenAI

        return AsyncOpenAI(**options)

    def _model(self, client: Any) -> Any:
        named = parse_model(self.name)
        match named.provider:
            case "anthropic":
                from pydantic_ai.models.anthropic import AnthropicModel
                from pydantic_ai.providers.anthropic import AnthropicProvider

                return AnthropicModel(named.model, provider=AnthropicProvider(anthropic_client=client))
            case "openai-responses":
                from pydantic_ai.models.openai import OpenAIResponsesModel
                from pydantic_ai.providers.openai import OpenAIProvider

                return OpenAIResponsesModel(named.model, provider=OpenAIProvider(openai_client=client))
            case _:
                from pydantic_ai.models.openai import OpenAIChatModel
                from pydantic_ai.providers.openai import OpenAIProvider

                return OpenAIChatModel(named.model, provider=OpenAIProvider(openai_client=client))

    def _say(self, error: Exception) -> NoReturn:
        """Raise what a library's error means. A refusal before any work costs nothing."""
        status = getattr(error, "status_code", None)
        said = " ".join(str(error).replace(self.key, "[key]").split())[:LONGEST_DETAIL]
        if isinstance(status, int) and 400 <= status < 500:
            self._refused_in_a_row += status == 429
            meaning = {
                401: "the provider refused the key",
                403: "the provider refused the key",
                404: f"the provider knows no model {self.name!r}",
                429: "too many requests",
            }.get(status, "the provider refused the request")
            raise ModelUnanswered("refused", f"HTTP {status}: {meaning}: {said}"[:LONGEST_DETAIL], tokens=(0, 0))
        if isinstance(status, int):
            raise ModelUnanswered("unreachable", f"HTTP {status}: {said}"[:LONGEST_DETAIL])
        names = {type(one).__name__ for one in _causes(error)}
        if "ConnectError" in names:
            raise ModelUnanswered("unreachable", f"nothing answers at its address: {said}", tokens=(0, 0))
        if any("Timeout" in name for name in names):
            raise ModelUnanswered("timeout", f"no whole answer in {self.limit_s:.0f} s: {said}")
        if "ContentFilterError" in names:
            raise ModelUnanswered("refused", f"the model refused to answer: {said}")
        raise ModelUnanswered("malformed", f"the answer was cut or can't be read: {type(error).__name__}: {said}")


def _faults() -> tuple[type[Exception], ...]:
    """Return what the libraries raise for a server that refuses, is gone, or sends what can't be read."""
    from anthropic import AnthropicError
    from httpx2 import HTTPError
    from openai import OpenAIError
    from pydantic_ai.exceptions import AgentRunError, UserError

    read_wrongly = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
    return (AgentRunError, UserError, OpenAIError, AnthropicError, HTTPError, OSError, *read_wrongly)


def _picture(image: str) -> Any:
    from pydantic_ai.messages import BinaryContent

    content = base64.b64decode(image)
    return BinaryContent(
        data=content, media_type=next(kind for start, kind in PICTURES.items() if content.startswith(start))
    )


def _new_text(event: Any) -> str:
    """Return the text that a part of a stream adds."""
    for holder, name in (("part", "content"), ("delta", "content_delta")):
        text = getattr(getattr(event, holder, None), name, None)
        if isinstance(text, str) and type(event).__name__ != "PartEndEvent":
            return text
    return ""


def _finished(response: Any, step: Ask, *, is_chat: bool) -> ModelAnswer:
    """Return the whole answer. Without a count of tokens the worst case counts."""
    prompt = response.usage.input_tokens or len(step.prompt.encode())
    answer = response.usage.output_tokens or step.most_tokens
    said_why = (response.provider_details or {}).get("finish_reason")  # the library fills in its own "stop" for chats
    if response.finish_reason is None or (is_chat and said_why is None):
        raise ModelUnanswered("malformed", "the stream was cut: the answer has no end")
    if response.finish_reason == "content_filter":
        raise ModelUnanswered("refused", "the model refused to answer", tokens=(prompt, answer))
    text = "".join(part.content for part in response.parts if type(part).__name__ == "TextPart")
    if not text.strip():
        raise ModelUnanswered("malformed", "the answer has no text", tokens=(prompt, answer))
    return ModelAnswer(text=text, prompt_tokens=prompt, answer_tokens=answer)


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
