"""``neuroscript openapi serve``: errors before serving, and the service in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from tests.cli.conftest import run_installed, serving_http
from tests.interop.oauth_issuer import issuing

from neuroscript._imports import install_hint

AUDIENCE = "https://tools.example.com/api"
ROOT = Path(__file__).parents[2]
PLUGIN = '''
from neuroscript import ToolPolicy, ToolSpec, Toolset

mine = Toolset("mine")

@mine.tool
def loud() -> int:
    """Print something."""
    print("loud")
    return 7

def careful(rt):
    return 1

mine.add(ToolSpec("careful", "mine", return_type="int"), careful, ToolPolicy(requires_approval=True))
'''


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("openapi",), "expected an action: serve (see neuroscript openapi --help)"),
        (
            ("openapi", "serve", "--token-env", "NOT_SET_ANYWHERE"),
            "the variable in --token-env is not set, or is empty",
        ),
        (
            ("openapi", "serve", "--http", "0.0.0.0:0"),
            "an address that other machines can reach requires a token; add --token-env VARIABLE",
        ),
        (
            ("openapi", "serve", "--http", "192.0.2.1:1", "--token-env", "PATH"),
            "cannot serve at that address (OSError)",
        ),
        (
            ("openapi", "serve", "--http", "here"),
            "argument --http: expected an address such as 127.0.0.1:8000 (see neuroscript openapi serve --help)",
        ),
        (("openapi", "serve", "--required-scope", "a"), "--required-scope needs --issuer URL"),
        (
            ("openapi", "serve", "--issuer", "https://id.example.com"),
            "--issuer needs --audience URL, the URL of this server as its clients know it",
        ),
        (
            ("openapi", "serve", "--issuer", "https://id.example.com", "--audience", AUDIENCE, "--token-env", "A"),
            "--issuer and --token-env exclude each other",
        ),
        (
            ("openapi", "serve", "--tools", "nope.*"),
            "openapi: tools: nope.* matches no tool that may be called here",
        ),
    ],
)
def test_errors_before_serving(words: tuple[str, ...], sentence: str) -> None:
    """There is one line and exit code 2."""
    result = run_installed(*words)

    assert (result.code, result.out, result.err.splitlines()[-1]) == (2, "", f"neuroscript: {sentence}")


@pytest.mark.parametrize(
    ("library", "what"), [("starlette", "Starlette and uvicorn"), ("jsonschema_rs", "jsonschema-rs")]
)
def test_missing_extra_is_named(library: str, what: str) -> None:
    """The message contains the command that installs it."""
    code = (
        f"import sys; sys.modules['{library}'] = None; from neuroscript.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", code, "openapi", "serve"], capture_output=True, text=True, cwd=ROOT)

    sentence = f"serving over HTTP needs {what}; install it with: {install_hint('serve')}"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"neuroscript: {sentence}")


serving = partial(serving_http, "openapi", "serve", "--http", "127.0.0.1:0")
"""Serves in a separate process, and provides it with the URL of the document."""


def fetched(url: str, arguments: Any = None, **headers: str) -> tuple[int, Any]:
    """Return the status and the JSON of a response."""
    body = None if arguments is None else json.dumps(arguments).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.status or 0, json.load(error)


def test_service_in_a_process(tmp_path: Path) -> None:
    """It has the options of other commands, prints on stderr, and ends with a signal."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    words = ("-p", str(plugin), "--tools", "mine.*", "--title", "Mine", "--token-env", "MINE_TOKEN")
    known = {"Authorization": "Bearer t-5f1c0e"}
    with serving(*words, "--audit", str(tmp_path / "log"), MINE_TOKEN="t-5f1c0e") as (running, url):
        base = url.removesuffix("/openapi.json")
        refused = fetched(url)
        document = fetched(url, **known)[1]
        loud = fetched(f"{base}/mine/loud", {}, **known)
        careful = fetched(f"{base}/mine/careful", {}, **known)
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=20)

    assert (refused[0], document["info"]["title"], [*document["paths"]]) == (
        401,
        "Mine",
        ["/mine/careful", "/mine/loud"],
    )
    assert loud == (200, 7)
    assert (careful[0], careful[1]["code"], careful[1]["retry"]) == (403, "policy.rejected", "never")
    assert (out, "loud" in err) == ("", True)
    assert running.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert "mine.loud" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_access_tokens_and_their_scopes(tmp_path: Path) -> None:
    """A token permits the tools of its scopes, by a pattern or a profile, and the audit log names its user."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[policy]\nallow = ["math.*", "str.*"]\n\n[policy.profiles.words]\nallow = ["str.*"]\n')
    with issuing() as issuer:
        words = ["--policy", str(policy), "--audit", str(tmp_path / "log"), "--issuer", issuer.url]
        words += ["--audience", AUDIENCE, "--required-scope", "use"]
        words += ["--scope", "add=math.add", "--scope-profile", "words=words"]

        def sent(url: str, scope: str, arguments: Any = None) -> tuple[int, Any]:
            token = issuer.token(AUDIENCE, scope=scope, sub="ada")
            return fetched(url, arguments, Authorization=f"Bearer {token}")

        with serving(*words) as (_, url):
            base = url.removesuffix("/openapi.json")
            paths = [*sent(url, "use add")[1]["paths"]]
            both = sent(url, "use add words")[1]["paths"]
            added = sent(f"{base}/math/add", "use add", {"num1": 1, "num2": 2.5})
            refused = [sent(url, "add")[0], sent(url, "use")[0], sent(f"{base}/str/toupper", "use add", {})[0]]
            anonymous = fetched(url)[0]
            metadata = fetched(f"{base}/.well-known/oauth-protected-resource/api")[1]
        user = f"{issuer.url}#ada/"

    assert (paths, "/str/toupper" in both, added) == (["/math/add"], True, (200, 3.5))
    assert (refused, anonymous) == ([403, 403, 403], 401)
    assert set(metadata["scopes_supported"]) == {"use", "add", "words"}
    assert user in (tmp_path / "log").read_text()


def test_missing_extra_for_access_tokens_is_named() -> None:
    """It is another one than that of the service."""
    code = "import sys; sys.modules['jwt'] = None; from neuroscript.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ("openapi", "serve", "--issuer", "https://id.example.com", "--audience", AUDIENCE)
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=ROOT)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(f"install it with: {install_hint('mcp')}")
