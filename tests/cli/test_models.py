"""``neuroscript models``: lists, checks, and no printed keys."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import command, process
from tests.llm.server import ModelServer, says, status


def test_list_shows_what_models_lack() -> None:
    """The pattern matches names, and the network is not used."""
    result = command("models", "list", "gpt-4o-m*")

    assert (result.code, result.out, result.err) == (
        0,
        "gpt-4o-mini  openai-chat  no key: set OPENAI_API_KEY; (alias: 4o-mini)\n",
        "",
    )


def test_list_json_contains_the_key_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It contains the name of the variable, never its value."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    result = command("models", "list", "4o-mini", "--json")

    assert json.loads(result.out) == [
        {
            "name": "gpt-4o-mini",
            "aliases": ["4o-mini"],
            "api": "openai-chat",
            "has_tools": True,
            "has_key": True,
            "key_variable": "OPENAI_API_KEY",
        }
    ]
    assert "sk-canary" not in result.out


def test_list_shows_the_models_of_a_server(server: ModelServer) -> None:
    result = command("models", "list", "--base-url", server.base_url())

    assert (result.code, result.out) == (0, "small\ntiny\n")


def test_pattern_without_a_match_is_reported() -> None:
    """It is not an error."""
    result = command("models", "list", "gopher*", "--json")

    assert (result.code, result.out, result.err) == (0, "[]\n", "neuroscript: no model matches gopher*\n")


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic"])
def test_check_sends_one_request(api: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It uses the key for the base URL."""
    monkeypatch.setenv("NEUROSCRIPT_MODEL_KEY", "sk-canary")
    server.script(says("ready"))
    result = command("models", "check", "tiny", "--api", api, "--base-url", server.base_url(api), "--json")

    data = json.loads(result.out)
    assert (result.code, data["ok"], data["model"], data["error"]) == (0, True, "tiny", None)
    assert data["usage"] == {"input_tokens": 10, "output_tokens": 3}
    assert "sk-canary" in str(server.requests[0].headers)
    assert "sk-canary" not in f"{result.out}{result.err}"


def test_check_without_a_name_uses_the_first_model(server: ModelServer) -> None:
    server.script(says("ready"))
    result = command("models", "check", "--base-url", server.base_url())

    assert result.code == 0
    assert result.out.startswith("small answers (OpenAI Chat, ")
    assert result.out.endswith(" s, 10 + 3 tokens)\n")


def test_check_reports_a_failed_model(server: ModelServer) -> None:
    """The command fails with the code of the error."""
    server.script(status(401, word="invalid_api_key"))
    result = command("models", "check", "tiny", "--base-url", server.base_url())

    text = "the model's server rejected the key, or the key lacks a permission (401 invalid_api_key)"
    assert (result.code, result.out, result.err) == (1, f"tiny does not answer: {text} (llm.auth)\n", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "expected an action: list, check (see neuroscript models --help)"),
        (["check"], "expected NAME or --base-url (see neuroscript models check --help)"),
        (["check", "gopher"], "unknown model gopher; to list the known models, run: neuroscript models list"),
        (
            ["check", "gpt-4o-mini"],
            "no key for this model; set OPENAI_API_KEY, or run: llm keys set openai",
        ),
        (
            ["list", "--base-url", "http://\x01"],
            "argument --base-url: expected a URL such as http://127.0.0.1:8080/v1 (see neuroscript models list --help)",
        ),
    ],
    ids=["action", "model", "unknown", "key", "address"],
)
def test_usage_errors_are_reported(words: list[str], sentence: str) -> None:
    """No request is sent."""
    result = command("models", *words)

    assert (result.code, result.out, result.err) == (2, "", f"neuroscript: {sentence}\n")


@pytest.mark.slow
def test_list_works_in_a_separate_process() -> None:
    result = process("models", "list", "gpt-4o-mini")

    assert (result.code, result.out.split()[:2]) == (0, ["gpt-4o-mini", "openai-chat"])
