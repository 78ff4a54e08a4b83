"""Model clients against a real server, with three APIs, streamed or not."""

from __future__ import annotations

import gzip
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import attrs
import pytest
from tests.llm.server import (
    APIS,
    STREAMED,
    WHOLE,
    Api,
    ModelReply,
    ModelServer,
    Raw,
    Step,
    asks,
    call,
    cut_after,
    drips,
    empty,
    hangs,
    html,
    overflows,
    refuses,
    says,
    sends,
    status,
    written,
)

from neuroscript import ArgSpec, ArgType, LLMError, SpecError, ToolCall, ToolResult, ToolSpec, Turn
from neuroscript.llm import Model, model
from neuroscript.llm.wire.prompted import PromptedModel
from neuroscript.runtime.replies import RetriedRequest, Usage

Reach = Callable[..., Model]

ADD = ToolSpec(
    "add", "math", args=(ArgSpec("a", ArgType.INT), ArgSpec("b", ArgType.INT)), description="Add two numbers."
)
HI = (Turn("user", "hi"),)
LONG = ModelReply("one two three four five six seven eight")

apis = pytest.mark.parametrize("api", APIS)
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@apis
@streams
def test_reply_has_text_and_usage(api: Api, stream: bool, server: ModelServer, reach: Reach) -> None:
    """The text is reported in pieces as it arrives."""
    server.script(says("good morning to you"))
    arrived: list[str] = []

    reply = reach(api, stream=stream).reply(HI, on_text=arrived.append)

    assert (reply.turn.role, reply.turn.content, reply.stop) == ("assistant", "good morning to you", "end")
    assert (reply.usage, reply.retries) == (Usage(10, 3), ())
    assert "".join(arrived) == "good morning to you"
    assert (len(arrived) > 1) is stream
    assert [request.streamed for request in server.requests] == [stream]


@apis
@streams
def test_calls_and_results_are_converted_over_several_turns(
    api: Api, stream: bool, server: ModelServer, reach: Reach
) -> None:
    """Names are canonical in Python and in wire form in requests, and results are where the API needs them."""
    server.script(asks(call("math__add", {"a": "2", "b": 3}), call("math__add", {"a": 1, "b": 1})), says("five, two"))
    client = reach(api, stream=stream)

    first = client.reply(HI, [ADD])
    results = tuple(
        ToolResult(each.id, each.name, value) for each, value in zip(first.turn.tool_calls, (5, 2), strict=True)
    )
    second = client.reply([*HI, first.turn, Turn("tool", tool_results=results)], [ADD])

    assert (first.stop, second.turn.content) == ("tools", "five, two")
    assert [each.name for each in first.turn.tool_calls] == ["math.add", "math.add"]
    sent = str(server.requests[1].body)
    assert all(each.id in sent for each in first.turn.tool_calls)
    assert "math__add" in sent
    assert "math.add" not in sent


@pytest.mark.parametrize(
    ("api", "stream"),
    [
        ("openai-chat", False),
        ("openai-chat", True),
        ("openai-responses", False),
        ("openai-responses", True),
        ("anthropic", True),
    ],
)
def test_invalid_json_arguments_stay_text(api: Api, stream: bool, server: ModelServer, reach: Reach) -> None:
    """The error can go back to the model."""
    server.script(asks(call("math__add", '{"a": 2,')))

    reply = reach(api, stream=stream).reply(HI, [ADD])

    assert reply.turn.tool_calls == (ToolCall("math.add", '{"a": 2,', id="call_1"),)


@attrs.frozen
class Failure:
    """A permanent behaviour of the server, and the expected error code, retry and number of requests."""

    step: Step
    code: str
    retry: str
    requests: int


FAILURES = {
    "401": Failure(status(401, word="invalid_api_key"), "llm.auth", "host", 1),
    "402": Failure(status(402), "llm.auth", "host", 1),
    "403": Failure(status(403), "llm.auth", "host", 1),
    "400": Failure(status(400), "llm.request", "host", 1),
    "422": Failure(status(422), "llm.request", "host", 1),
    "404": Failure(status(404), "llm.model_not_found", "host", 1),
    "408": Failure(status(408), "llm.timeout", "later", 3),
    "429": Failure(status(429), "llm.rate", "later", 3),
    "429 with a wait": Failure(status(429, {"Retry-After": "0"}), "llm.rate", "later", 3),
    "429 with a long wait": Failure(status(429, {"Retry-After": "61"}), "llm.rate", "later", 1),
    "429 without money": Failure(status(429, word="insufficient_quota"), "llm.rate", "host", 1),
    "500": Failure(status(500), "llm.server", "later", 3),
    "503": Failure(status(503), "llm.server", "later", 3),
    "504": Failure(status(504), "llm.timeout", "later", 3),
    "529": Failure(status(529, word="overloaded_error"), "llm.server", "later", 3),
    "503 of html": Failure(html(503), "llm.server", "later", 3),
    "html": Failure(html(), "llm.format", "host", 1),
    "other json": Failure(sends({"status": "fine"}), "llm.format", "host", 1),
    "a list": Failure(sends([1]), "llm.format", "host", 1),
    "no bytes": Failure(cut_after(0, LONG), "llm.incomplete", "later", 3),
    "broken": Failure(cut_after(70, LONG), "llm.incomplete", "later", 3),
    "ended": Failure(cut_after(70, LONG, politely=True), "llm.incomplete", "later", 3),
    "empty": Failure(empty(), "llm.empty", "later", 3),
}


@apis
@streams
@pytest.mark.parametrize("name", FAILURES)
def test_failure_has_code_and_number_of_requests(
    name: str, api: Api, stream: bool, server: ModelServer, reach: Reach
) -> None:
    """Temporary failures are retried up to three requests, others are not. The server's message is not shown."""
    failure = FAILURES[name]
    server.script(forever=failure.step)
    received: list[RetriedRequest] = []

    with pytest.raises(LLMError) as caught:
        reach(api, stream=stream, key="sk-canary").reply(HI, on_retry=received.append)

    assert (caught.value.code, caught.value.retry) == (failure.code, failure.retry)
    assert len(server.requests) == failure.requests
    assert [each.code for each in received] == [failure.code] * (failure.requests - 1)
    assert "PRIVATE" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@apis
@streams
def test_silent_server_times_out(api: Api, stream: bool, server: ModelServer, reach: Reach) -> None:
    """The server does not respond at all."""
    server.script(forever=hangs(30))
    began = time.monotonic()

    with pytest.raises(LLMError) as caught:
        reach(api, stream=stream, timeout=0.2, attempts=2).reply(HI)

    assert (caught.value.code, caught.value.retry, len(server.requests)) == ("llm.timeout", "later", 2)
    assert time.monotonic() - began < 15


@apis
def test_silence_after_text_is_not_retried(api: Api, server: ModelServer, reach: Reach) -> None:
    """Otherwise the text would be reported twice."""
    server.script(hangs(30, after=2500, reply=ModelReply("word " * 200)))
    arrived: list[str] = []

    with pytest.raises(LLMError) as caught:
        reach(api, timeout=0.5).reply(HI, on_text=arrived.append)

    assert (caught.value.code, caught.value.retry, len(server.requests)) == ("llm.timeout", "later", 1)
    assert "".join(arrived).startswith("word")


@apis
def test_cut_stream_is_retried_only_before_text(api: Api, server: ModelServer, reach: Reach) -> None:
    """A cut before the first text is retried."""
    server.script(cut_after(1500, ModelReply("word " * 200)), says("whole"))
    arrived: list[str] = []

    with pytest.raises(LLMError) as caught:
        reach(api).reply(HI, on_text=arrived.append)

    assert (caught.value.code, caught.value.retry, len(server.requests)) == ("llm.incomplete", "later", 1)
    assert arrived
    assert reach(api).reply(HI).turn.content == "whole"
    server.script(cut_after(1500, ModelReply("word " * 200)), says("whole"))
    reply = reach(api).reply(HI)
    assert (reply.turn.content, [each.code for each in reply.retries]) == ("whole", ["llm.incomplete"])


@apis
@streams
def test_endless_reply_times_out(api: Api, stream: bool, server: ModelServer, reach: Reach) -> None:
    """A reply has a total time limit, even if bytes keep arriving."""
    server.script(drips(0.1))

    with pytest.raises(LLMError) as caught:
        reach(api, stream=stream, total_timeout=0.35).reply(HI)

    assert str(caught.value) == "the model's reply was not complete after 0.35 s"
    assert (caught.value.code, caught.value.retry, len(server.requests)) == ("llm.timeout", "later", 1)


@apis
@streams
def test_reply_lists_its_retries(api: Api, stream: bool, server: ModelServer, reach: Reach) -> None:
    """Each with its code and its wait."""
    server.script(status(500), status(429, {"retry-after-ms": "20"}), says("at last"))

    reply = reach(api, stream=stream).reply(HI)

    assert (reply.turn.content, len(server.requests)) == ("at last", 3)
    assert [each.code for each in reply.retries] == ["llm.server", "llm.rate"]
    assert reply.retries[1].seconds == 0.02
    assert reply.seconds >= 0.02


def test_retry_after_may_be_a_date(server: ModelServer, reach: Reach) -> None:
    """A date in the past means no wait."""
    past = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    server.script(status(503, {"Retry-After": past}), says("ready"))

    assert reach("openai-chat").reply(HI).retries == (RetriedRequest("llm.server", 0.0),)


def test_long_retry_after_is_reported_and_not_awaited(server: ModelServer, reach: Reach) -> None:
    """The host can plan the retry."""
    server.script(status(429, {"Retry-After": "3600"}))

    with pytest.raises(LLMError) as caught:
        reach("openai-chat").reply(HI)

    assert str(caught.value) == (
        "the model's server limits requests at present (429 some_error); try again after 3600 s"
    )


@apis
@streams
@pytest.mark.parametrize(("step", "stop"), [(refuses(), "refused"), (overflows(), "length")], ids=["refused", "length"])
def test_truncated_and_refused_replies_are_returned_once(
    step: ModelReply, stop: str, api: Api, stream: bool, server: ModelServer, reach: Reach
) -> None:
    """They are replies, so they are not retried."""
    server.script(step)

    assert reach(api, stream=stream).reply(HI).stop == stop
    assert len(server.requests) == 1


@apis
def test_unreachable_server_is_retried(api: Api) -> None:
    """As often as *attempts* allows."""
    received: list[RetriedRequest] = []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with model("tiny", base_url=address, api=api, backoff=0.001) as client, pytest.raises(LLMError) as caught:
        client.reply(HI, on_retry=received.append)

    assert (str(caught.value), caught.value.code, caught.value.retry) == (
        "the model's server cannot be reached",
        "llm.connect",
        "later",
    )
    assert [each.code for each in received] == ["llm.connect"] * 2


@apis
def test_unstreamed_response_to_stream_request_is_read(api: Api, server: ModelServer, reach: Reach) -> None:
    """Some servers ignore the request for a stream."""
    server.script(sends(WHOLE[api](says("all at once"))))
    arrived: list[str] = []

    reply = reach(api).reply(HI, on_text=arrived.append)

    assert (reply.turn.content, arrived) == ("all at once", ["all at once"])


@apis
def test_callback_exception_propagates(api: Api, server: ModelServer, reach: Reach) -> None:
    """It is not a model error, and the request is not retried."""
    server.script(forever=says("good morning"))

    def deaf(text: str) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        reach(api).reply(HI, on_text=deaf)

    assert len(server.requests) == 1


@apis
def test_requests_contain_model_options_and_token_limit(api: Api, server: ModelServer, reach: Reach) -> None:
    """The limit has the name that the API uses."""
    server.script(says("ok"))

    reach(api, max_tokens=99, options={"temperature": 0}).reply(HI, [ADD])

    body = server.requests[0].body
    bound = "max_output_tokens" if api == "openai-responses" else "max_tokens"
    assert (body["model"], body["temperature"], body[bound]) == ("tiny", 0, 99)
    assert "math__add" in str(body["tools"])


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("strict", [False, True])
def test_strict_mode_is_off_by_default(api: Api, strict: bool, server: ModelServer, reach: Reach) -> None:
    """It is on only if requested."""
    server.script(says("ok"))

    reach(api, strict=strict).reply(HI, [ADD])

    tool = server.requests[0].body["tools"][0]
    assert tool.get("function", tool)["strict"] is strict


@apis
def test_key_is_sent_but_never_shown(api: Api, server: ModelServer, reach: Reach) -> None:
    """It is neither in the representation nor in an error."""
    server.script(forever=status(401))
    client = reach(api, key=lambda: "sk-canary")

    with pytest.raises(LLMError) as caught:
        client.ask(HI)

    headers = server.requests[0].headers
    assert "sk-canary" in (headers.get("X-Api-Key", ""), headers.get("Authorization", "").removeprefix("Bearer "))
    assert repr(client) == "Model(name='tiny')"
    assert "sk-canary" not in f"{caught.value!r}{client._connection!r}"


@apis
def test_custom_address_gets_no_environment_key(
    api: Api, server: ModelServer, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address may belong to anyone."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "sk-canary")
    server.script(says("ok"))

    reach(api).ask(HI)

    assert "sk-canary" not in str(server.requests[0].headers)


def test_client_implements_llm_protocol(server: ModelServer, reach: Reach) -> None:
    """A host can provide it to tools."""
    server.script(says("ready"), asks(call("math__add", {"a": 1, "b": 2})))
    client = reach("openai-chat")

    assert client.ask(HI).content == "ready"
    assert [each.name for each in client.ask_with_tools(HI, [ADD]).tool_calls] == ["math.add"]
    assert client.embed("tea") == [0.5, -1.0, 2.0]
    assert client.names() == ["small", "tiny"]


@apis
@streams
def test_redirects_are_not_followed(api: Api, stream: bool, server: ModelServer, reach: Reach) -> None:
    """The key and the conversation go only to the configured address."""
    server.script(forever=status(307, {"Location": f"{server.base_url(api)}/elsewhere"}))

    with pytest.raises(LLMError) as caught:
        reach(api, stream=stream).ask(HI)

    assert str(caught.value) == "the model's server redirects requests; check the address (307 some_error)"
    assert (caught.value.code, caught.value.retry, len(server.requests)) == ("llm.format", "host", 1)


@apis
def test_server_lists_models(api: Api, reach: Reach) -> None:
    """In order."""
    assert reach(api).names() == ["small", "tiny"]


@pytest.mark.parametrize("length", [1])
def test_malformed_model_list_is_format_error(length: int, server: ModelServer) -> None:
    """Malformed embeddings are too."""
    with model("tiny", base_url=f"{server.base_url()}/{'x' * length}", backoff=0.001) as client:
        for ask in (client.names, lambda: client.embed("tea")):
            with pytest.raises(LLMError) as caught:
                ask()
            assert (caught.value.code, caught.value.retry) == ("llm.model_not_found", "host")


def test_anthropic_has_no_embeddings(reach: Reach) -> None:
    """The API does not support them."""
    with pytest.raises(LLMError) as caught:
        reach("anthropic").embed("tea")

    assert (str(caught.value), caught.value.code, caught.value.retry) == (
        "Anthropic does not support embeddings",
        "llm.request",
        "host",
    )


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"api": "gopher"}, "model: api must be 'openai-chat', 'openai-responses' or 'anthropic'"),
        ({"timeout": 0}, "model: timeout must be a positive, finite number of seconds"),
        ({"attempts": 0}, "model: attempts must be a positive integer"),
        ({"max_tokens": -1}, "model: max_tokens must be a positive integer, or None"),
        ({"max_tokens": 0}, "model: max_tokens must be a positive integer, or None"),
        ({"backoff": -1}, "model: backoff must be a non-negative number of seconds"),
        (
            {"base_url": "http://\x01", "timeout": 0},
            "model: base_url must be an address such as http://127.0.0.1:8080/v1, or empty; "
            "timeout must be a positive, finite number of seconds",
        ),
        (
            {"base_url": "127.0.0.1:8080"},
            "model: base_url must be an address such as http://127.0.0.1:8080/v1, or empty",
        ),
        (
            {"base_url": "http://127.0.0.1:8080/v 1"},
            "model: base_url must be an address such as http://127.0.0.1:8080/v1, or empty",
        ),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, object], text: str) -> None:
    """Before any request."""
    with pytest.raises(SpecError) as caught:
        model("tiny", **{"base_url": "http://127.0.0.1:1", **settings})  # type: ignore[arg-type]

    assert str(caught.value) == text


@apis
@pytest.mark.parametrize(
    ("step", "code", "retry"),
    [(refuses(), "llm.refused", "never"), (overflows(), "llm.length", "host")],
    ids=["no", "cut"],
)
def test_ask_raises_for_incomplete_reply(
    api: Api, step: Step, code: str, retry: str, server: ModelServer, reach: Reach
) -> None:
    """``ask`` and ``ask_with_tools`` raise, and ``reply`` returns the stop reason; each makes one request."""
    server.script(forever=step)
    client = reach(api)

    with pytest.raises(LLMError) as caught:
        client.ask(HI)
    with pytest.raises(LLMError) as offered:
        client.ask_with_tools(HI, [ADD])

    assert (caught.value.code, caught.value.retry) == (code, retry)
    assert (offered.value.code, offered.value.retry, len(server.requests)) == (code, retry, 2)


def test_prompted_model_reports_usage_and_retries(server: ModelServer, reach: Reach) -> None:
    """They are those of the wrapped model."""
    server.script(status(503), says("Yes."))

    reply = PromptedModel(reach("openai-chat")).reply(HI)

    assert (reply.turn.content, reply.usage) == ("Yes.", Usage(10, 3))
    assert [retried.code for retried in reply.retries] == ["llm.server"]


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "silent"])
def test_stream_ends_with_done_event(broken: bool, server: ModelServer, reach: Reach) -> None:
    """The connection may break after ``[DONE]``; the SDK of OpenAI does not read further either."""
    reply = says("good morning")
    whole = b"".join(written(event) for event in STREAMED["openai-chat"](reply))
    server.script(cut_after(len(whole), reply) if broken else hangs(30, after=len(whole), reply=reply))
    arrived: list[str] = []

    reply = reach("openai-chat", timeout=2.0).reply(HI, on_text=arrived.append)

    assert (reply.turn.content, "".join(arrived), reply.retries) == ("good morning", "good morning", ())


@apis
@pytest.mark.parametrize("key", ["sk-canary\n", "sk-canar\u00fd"], ids=["line", "letter"])
def test_key_with_line_break_is_rejected(api: Api, key: str) -> None:
    """For example, a key read from a file. No request is made, and the error does not contain the key."""
    with pytest.raises(LLMError) as caught:
        model("tiny", base_url="http://127.0.0.1:1", api=api, key=key)

    assert (str(caught.value), caught.value.code, caught.value.retry) == (
        "the key cannot be sent: expected printable ASCII characters",
        "llm.key",
        "host",
    )


@pytest.mark.parametrize("proxy", ["http://user:canary@proxy:x", "gopher://user:canary@proxy"])
def test_invalid_proxy_is_connect_error(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error does not contain the proxy's password."""
    monkeypatch.setenv("HTTP_PROXY", proxy)

    with pytest.raises(LLMError) as caught:
        model("tiny", base_url="http://127.0.0.1:1")

    assert (caught.value.code, caught.value.retry) == ("llm.connect", "host")
    assert caught.value.text.endswith("; check the proxy settings of the environment")
    assert "canary" not in caught.value.text
    assert caught.value.__context__ is None


def test_custom_address_gets_no_account_headers(
    server: ModelServer, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names an account for the SDK of OpenAI."""
    monkeypatch.setenv("OPENAI_ORG_ID", "canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "canary")
    server.script(says("ok"))

    reach("openai-chat").ask(HI)

    assert "canary" not in str(server.requests[0].headers)


@apis
def test_compressed_stream_is_decoded(api: Api, server: ModelServer, reach: Reach) -> None:
    """In pieces as they arrive, including multi-byte characters."""
    whole = b"".join(written(event) for event in STREAMED[api](says("h\u00e9llo \U0001f600 " * 50)))
    server.script(Raw(200, gzip.compress(whole), {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}))

    assert reach(api).ask(HI).content == "h\u00e9llo \U0001f600 " * 50


def test_invalid_compression_is_format_error(server: ModelServer, reach: Reach) -> None:
    """The request is not retried."""
    server.script(forever=Raw(200, b"no", {"Content-Type": "application/json", "Content-Encoding": "gzip"}))

    with pytest.raises(LLMError) as caught:
        reach("openai-chat").ask(HI)

    assert (caught.value.code, caught.value.retry, len(server.requests)) == ("llm.format", "host", 1)


@apis
def test_client_is_usable_after_interrupt(api: Api, server: ModelServer, reach: Reach) -> None:
    """The connection with the rest of the reply is not reused."""
    server.script(LONG, says("second"))
    client = reach(api)

    def interrupted(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.reply(HI, on_text=interrupted)

    assert client.ask(HI).content == "second"
    assert len(server.requests) == 2


@pytest.mark.alone
def test_wait_beyond_total_limit_fails_at_once(server: ModelServer, reach: Reach) -> None:
    """The error states the wait that the server asks for."""
    server.script(status(429, {"Retry-After": "5"}), says("late"))
    began = time.monotonic()

    with pytest.raises(LLMError) as caught:
        reach("openai-chat", total_timeout=2.0).ask(HI)

    assert caught.value.text.endswith("; try again after 5 s")
    assert time.monotonic() - began < 1.5
