"""``mcp serve --issuer``, ``mcp login`` and ``mcp logout``, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.cli.conftest import run_installed
from tests.interop.oauth_issuer import Issuer, approve, issuing
from tests.interop.oauth_place import MODERN_META, names, protected

ROOT = Path(__file__).parents[2]
AUDIENCE = "https://tools.example.com/mcp"
POLICY = """
[policy]
allow = ["math.*", "str.*"]

[policy.profiles.words]
allow = ["str.toupper", "fs.*"]
"""


@contextmanager
def started(words: Sequence[str], pattern: str, **environment: str) -> Iterator[tuple[Any, str]]:
    """Run a command until it writes a line with a pattern, and yield it with the first group."""
    command = [sys.executable, "-m", "neuroscript", *words]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}, cwd=ROOT
    ) as running:
        try:
            assert running.stderr is not None
            line = running.stderr.readline()
            found = re.search(pattern, line)
            assert found, line + running.stderr.read()
            yield running, found[1]
        finally:
            running.kill()


def listed(issuer: Issuer, url: str, scope: str) -> Any:
    """Return the tools that a token with these scopes lists, or the status."""
    headers = {
        "Authorization": f"Bearer {issuer.token(AUDIENCE, scope=scope)}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": MODERN_META}}
    answer = httpx2.post(url, json=body, headers=headers, trust_env=False)
    return names(answer) if answer.status_code == 200 else answer.status_code


@pytest.mark.slow
def test_a_server_permits_what_the_scopes_of_a_token_permit(tmp_path: Path) -> None:
    """By patterns of tools, or by a profile of the policy file, which can only narrow the policy."""
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    with issuing() as issuer:
        words = ["mcp", "serve", "--http", "127.0.0.1:0", "--policy", str(policy), "-p", "no:neuroscript-fs"]
        words += ["--issuer", issuer.url, "--audience", AUDIENCE, "--scope", "add=math.add", "--scope", "add=math.abs"]
        words += ["--scope-profile", "words=words"]
        with started(words, r"serving at (\S+)") as (_, url):
            assert listed(issuer, url, "add") == ["math__abs", "math__add"]
            assert listed(issuer, url, "words") == ["str__toupper"]
            assert listed(issuer, url, "add words") == ["math__abs", "math__add", "str__toupper"]
            assert listed(issuer, url, "other") == 403
            found = httpx2.get(f"{url.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp", trust_env=False)
            assert found.json()["scopes_supported"] == ["add", "words"]


@pytest.mark.slow
def test_login_call_and_logout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user logs in once; then other processes use the token, until it is removed."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with protected() as place:
        policy = tmp_path / "policy.toml"
        policy.write_text(f'[mcp.notes]\nurl = "{place.url}"\noauth = {{scopes = ["notes:read"]}}\ntrusted = true\n')
        server = ["--policy", str(policy), "notes"]

        before = run_installed("mcp", "tools", *server)
        with started(["mcp", "login", "--no-browser", *server], r"log in at (\S+)") as (running, page):
            assert approve(page)[0] == 200
            out, err = running.communicate(timeout=20)
            assert (running.returncode, out, err) == (0, "", "neuroscript: notes: logged in\n")
        after = run_installed("mcp", "tools", *server)
        first, second = (run_installed("mcp", "logout", *server) for _ in range(2))
        end = run_installed("mcp", "tools", *server)

    assert before.code == 2
    assert "log in with 'neuroscript mcp login NAME'" in before.err
    assert "notes.notes_read_note" in after.out
    assert "write_note" not in after.out
    assert (first.code, second.code) == (0, 1)
    assert second.err == "neuroscript: notes: there are no access tokens\n"
    assert end.code == 2


@pytest.mark.full
def test_a_broken_login_has_an_exit_code(tmp_path: Path) -> None:
    """And says why."""
    with protected() as place:
        place.issuer.redirected = lambda params: {"error": "access_denied", "state": params["state"]}
        words = ["mcp", "login", "--no-browser", "--url", place.url]
        with started(words, r"log in at (\S+)", XDG_DATA_HOME=str(tmp_path)) as (running, page):
            approve(page)
            _, err = running.communicate(timeout=20)

    assert running.returncode == 2
    assert err.splitlines()[0] == "neuroscript: mcp login: the issuer refused the login: access_denied"


HTTP = ("mcp", "serve", "--http", "127.0.0.1:0")
ISSUER = ("--issuer", "https://id.example.com")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mcp", "serve", "--scope", "a=b"), "--scope needs --issuer URL"),
        (("mcp", "serve", *ISSUER), "--issuer needs HTTP; add --http"),
        ((*HTTP, *ISSUER), "--issuer needs --audience URL, the URL of this server as its clients know it"),
        ((*HTTP, *ISSUER, "--audience", AUDIENCE, "--token-env", "A"), "--issuer and --token-env exclude each other"),
        (
            (*HTTP, *ISSUER, "--audience", AUDIENCE, "--scope", "a=b", "--scope-profile", "a=c"),
            "a has two meanings; use --scope or --scope-profile once",
        ),
        ((*HTTP, "--issuer", "http://id.example.com", "--audience", AUDIENCE), "access tokens: issuer: expected https"),
        (("mcp", "serve", "--scope", "a"), "expected a scope and what it permits, such as notes:read=notes.read_*"),
        (("mcp", "login"), "expected the NAME of a server in the policy file, or --url URL"),
        (("mcp", "login", "x", "--url", "https://x.example"), "NAME cannot be combined with --url"),
        (("mcp", "login", "x"), "NAME is a server in a policy file, but there is no policy file; add --policy FILE"),
        (("mcp", "login", "--policy", "FILE", "plian"), "unknown server plian in the policy file; did you mean plain?"),
        (
            ("mcp", "login", "--policy", "FILE", "plain"),
            "mcp.plain does not use OAuth; add 'oauth = true' to its table",
        ),
        (("mcp", "login", "--policy", "FILE", "robot"), "mcp.robot: oauth: the host provides no secret named NOT_SET"),
        (("mcp", "login", "--url", "http://tools.example.com/mcp"), "mcp login: headers: Authorization would be sent"),
    ],
)
def test_wrong_options_say_what_to_do(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    """Before anything is served or opened."""
    file = tmp_path / "policy.toml"
    file.write_text(
        '[mcp.plain]\nurl = "https://tools.example.com/mcp"\n\n[mcp.robot]\nurl = "https://tools.example.com/mcp"\n'
        'oauth = {client_id = "a", client_secret = {secret = "NOT_SET"}, issuer = "https://i.example"}\n'
    )
    found = run_installed(*(str(file) if word == "FILE" else word for word in words))

    assert found.code == 2, found
    assert message in found.err
