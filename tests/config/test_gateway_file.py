"""The tables of a gateway in a policy file: their values, and every problem with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuroscript import Secret, SpecError, load_policy
from neuroscript.config.gateway_file import ClientTable, GatewaySettings, load_gateway

WHOLE = """
[policy]
allow = ["files.*", "math.*"]
grants = ["mcp:call:files/*"]
limits = {calls = 100}
[policy.profiles.careful]
deny = ["*.delete"]
[mcp.files]
command = ["serve"]
[gateway]
name = "office"
listen = "[::1]:8080"
names = "bare"
search_above = 30
metrics = true
audit = "logs/audit.jsonl"
sandbox = "files"
toolsets = ["math", "s*"]
instructions = "Be brief."
accept = "review"
[client.alice]
token = {secret = "ALICE"}
scopes = ["tools:read", "tools:write"]
monitor = true
[client.bob]
token = {secret = "BOB"}
allow = ["files.read"]
limits = {calls = 5}
"""

WRONG = """
[policy]
allow = ["a b"]
[gateway]
name = "an office"
listen = "127.0.0.1:99999"
names = "short"
search_above = 0
metrics = "yes"
audit = ""
toolsets = ["fs", 3]
accept = "never"
port = 80
[client."a b"]
[client.alice]
token = "the-token-itself"
scopes = ["a b"]
monitor = 1
tokens = 1
[client.bob]
limits = {calls = -1}
"""


def written(directory: Path, text: str) -> Path:
    path = directory / "gateway.toml"
    path.write_text(text)
    return path


def test_every_key_has_its_value(tmp_path: Path) -> None:
    file = load_gateway(written(tmp_path, WHOLE))

    assert file.settings == GatewaySettings(
        name="office",
        listen=("::1", 8080),
        names="bare",
        search_above=30,
        metrics=True,
        audit=str(tmp_path / "logs/audit.jsonl"),
        sandbox=str(tmp_path / "files"),
        toolsets=("math", "s*"),
        instructions="Be brief.",
        accept="review",
    )
    alice, bob = file.clients
    assert alice == ClientTable("alice", Secret("ALICE"), ("tools:read", "tools:write"), True, {})
    assert bob.changes["allow"] == ("files.read",)
    assert bob.changes["limits"].calls == 5
    assert [each.name for each in file.servers] == ["files"]
    assert file.policy == load_policy(tmp_path / "gateway.toml")


def test_profile_applies_to_the_policy(tmp_path: Path) -> None:
    assert load_gateway(written(tmp_path, WHOLE), profile="careful").policy.deny == ("*.delete",)


def test_file_without_these_tables_has_defaults(tmp_path: Path) -> None:
    file = load_gateway(written(tmp_path, ""))

    assert (file.settings, file.clients, file.servers) == (GatewaySettings(), (), ())


def test_every_problem_has_its_line_and_no_value(tmp_path: Path) -> None:
    """A policy file with these tables is invalid for all commands."""
    path = written(tmp_path, WRONG)
    with pytest.raises(SpecError) as error:
        load_gateway(path)
    with pytest.raises(SpecError) as other:
        load_policy(path)

    assert list(zip(error.value.lines, error.value.problems, strict=True)) == [
        (3, "policy.allow[0]: a b is not a valid pattern; use a name, or a pattern such as fs.*"),
        (5, "gateway.name: must be a name in quotes"),
        (6, 'gateway.listen: must be an address such as "127.0.0.1:8080"'),
        (7, 'gateway.names: must be "grouped" or "bare"'),
        (8, "gateway.search_above: must be a positive integer"),
        (9, "gateway.metrics: must be true or false"),
        (10, "gateway.audit: must be the path of a file, in quotes"),
        (11, "gateway.toolsets[1]: must be the name of an entry point, such as fs, in quotes"),
        (12, 'gateway.accept: must be "first" or "review"'),
        (13, "gateway.port: unknown key"),
        (14, 'client."a b": a client name can contain only ASCII letters, digits, - and _'),
        (16, 'client.alice.token: must be {secret = "NAME"}, the environment variable with the token'),
        (17, "client.alice.scopes[0]: must be a scope, in quotes"),
        (18, "client.alice.monitor: must be true or false"),
        (19, "client.alice.tokens: unknown key; did you mean token?"),
        (21, "client.bob.limits.calls: must be a non-negative integer, not -1"),
    ]
    assert "the-token-itself" not in str(error.value)
    assert str(other.value) == str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[client.a]\ntoken = {secret = "T"}\n[client.b]\ntoken = {secret = "T"}\n',
            "client.b.token: is also the token of a; each client needs its own",
        ),
        ("[gateway]\nmetrics = true\n", "gateway.metrics: is served over HTTP; set listen"),
        (
            '[gateway]\nmetrics = true\nlisten = "127.0.0.1:0"\n[client.a]\n',
            "gateway.metrics: no client may read them; set monitor = true in a table [client.NAME]",
        ),
    ],
)
def test_settings_that_do_not_belong_together_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        load_gateway(written(tmp_path, text))

    assert error.value.problems == (problem,)


@pytest.mark.parametrize("sandbox", [".", "..", "link"])
def test_sandbox_does_not_contain_what_decides_about_calls(sandbox: str, tmp_path: Path) -> None:
    """A client with a tool that writes files could otherwise change its own policy, or accept tools."""
    (tmp_path / "link").symlink_to(tmp_path)
    text = f'[mcp.files]\ncommand = ["serve"]\n[gateway]\naudit = "a.jsonl"\nsandbox = "{sandbox}"\n'

    with pytest.raises(SpecError) as error:
        load_gateway(written(tmp_path, text))

    assert error.value.problems == tuple(
        f"gateway.sandbox: contains {what}, which tools could change; use another directory"
        for what in ("this file", "the audit log", "the accepted tools of files")
    )
