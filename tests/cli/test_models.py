"""``neuroscript models``: what is listed, what is asked, and that no key is shown."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import command, process
from tests.llm.server import ModelServer, says, status


def test_models_are_listed_with_what_they_lack() -> None:
    """By a pattern of their names, without a network."""
    ran = command("models", "list", "gpt-4o-m*")

    assert (ran.code, ran.out, ran.err) == (
        0,
        "gpt-4o-mini  openai-chat  no key: set OPENAI_API_KEY; (alias: 4o-mini)\n",
        "",
    )


def test_models_are_listed_as_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the name of the variable, never with what it holds."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    ran = command("models", "list", "4o-mini", "--json")

    assert json.loads(ran.out) == [
        {
            "name": "gpt-4o-mini",
            "aliases": ["4o-mini"],
            "api": "openai-chat",
            "has_tools": True,
            "has_key": True,
            "key_variable": "OPENAI_API_KEY",
        }
    ]
    assert "sk-canary" not in ran.out


def test_a_server_is_asked_for_its_models(server: ModelServer) -> None:
    """At an address of one's own."""
    ran = command("models", "list", "--base-url", server.base_url())

    assert (ran.code, ran.out) == (0, "small\ntiny\n")


def test_a_pattern_that_matches_nothing_is_told() -> None:
    """It is no error."""
    ran = command("models", "list", "gopher*", "--json")

    assert (ran.code, ran.out, ran.err) == (0, "[]\n", "neuroscript: no model is called gopher*\n")


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic"])
def test_a_model_is_asked(api: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the key that is meant for an address, once."""
    monkeypatch.setenv("NEUROSCRIPT_MODEL_KEY", "sk-canary")
    server.script(says("ready"))
    ran = command("models", "check", "tiny", "--api", api, "--base-url", server.base_url(api), "--json")

    data = json.loads(ran.out)
    assert (ran.code, data["ok"], data["model"], data["error"]) == (0, True, "tiny", None)
    assert data["usage"] == {"input_tokens": 10, "output_tokens": 3}
    assert "sk-canary" in str(server.requests[0].headers)
    assert "sk-canary" not in f"{ran.out}{ran.err}"


def test_the_first_model_of_a_server_is_asked(server: ModelServer) -> None:
    """Where none is named."""
    server.script(says("ready"))
    ran = command("models", "check", "--base-url", server.base_url())

    assert ran.code == 0
    assert ran.out.startswith("small answers (OpenAI Chat, ")
    assert ran.out.endswith(" s, 10 + 3 tokens)\n")


def test_a_model_that_does_not_answer_is_told_with_its_code(server: ModelServer) -> None:
    """And the command fails."""
    server.script(status(401, word="invalid_api_key"))
    ran = command("models", "check", "tiny", "--base-url", server.base_url())

    text = "the model's server refused the key, or what may be done with it (401 invalid_api_key)"
    assert (ran.code, ran.out, ran.err) == (1, f"tiny does not answer: {text} (llm.auth)\n", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "an action is missing: list, check (see neuroscript models --help)"),
        (["check"], "a model is missing: give NAME, or --base-url (see neuroscript models check --help)"),
        (["check", "gopher"], "no model is called gopher; see: neuroscript models list"),
        (
            ["check", "gpt-4o-mini"],
            "there is no key for this model; set OPENAI_API_KEY, or run: llm keys set openai",
        ),
        (
            ["list", "--base-url", "http://\x01"],
            "argument --base-url: expected an address such as http://127.0.0.1:8080/v1 "
            "(see neuroscript models list --help)",
        ),
    ],
    ids=["action", "model", "unknown", "key", "address"],
)
def test_what_is_missing_is_said(words: list[str], sentence: str) -> None:
    """Before anything is asked."""
    ran = command("models", *words)

    assert (ran.code, ran.out, ran.err) == (2, "", f"neuroscript: {sentence}\n")


def test_a_process_of_its_own_lists_models() -> None:
    """As a user runs it."""
    ran = process("models", "list", "gpt-4o-mini")

    assert (ran.code, ran.out.split()[:2]) == (0, ["gpt-4o-mini", "openai-chat"])
