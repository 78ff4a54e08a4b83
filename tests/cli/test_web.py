"""``neuroscript web``: a process that serves the console, and who may reach it."""

from __future__ import annotations

import re
import signal
import ssl
import subprocess
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.cli.conftest import run_installed, serving_http
from tests.llm.server import ModelServer

serving = partial(serving_http, "web", "--port", "0")

TOKEN = "a-token-for-the-tests"


def test_link_signs_one_browser_in() -> None:
    """The cookie opens pages from then on; the link does nothing for the next browser."""
    with serving() as (_, link), httpx.Client(base_url=link.partition("/enter")[0]) as client:
        without = client.get("/browser", follow_redirects=True)
        entered = client.get(link)
        page = client.get("/browser")
        again = httpx.get(link)

    port = urlsplit(link).port
    assert (without.url.path, entered.status_code, again.status_code) == ("/sign-in", 200, 403)
    assert re.fullmatch(
        rf"neuroscript-{port}=[\w-]{{43}}; Path=/; HttpOnly; SameSite=Strict", entered.headers["set-cookie"]
    )
    assert "approver: also approves calls" in page.text
    assert "The link is no longer valid" in again.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_process_ends_on_a_signal(number: int) -> None:
    """Also while a browser receives events."""
    with serving() as (process, link), httpx.Client(base_url=link.partition("/enter")[0]) as client:
        client.get(link)
        process.send_signal(number)

        assert process.wait(20) in (128 + number, -number, 0)


def test_users_sign_in_over_https(tmp_path: Path) -> None:
    """The cookie is for encrypted connections only, and the role is that of the option."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    subprocess.run([*request, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    words = ["--bind", "0.0.0.0", "--certificate", str(certificate), "--certificate-key", str(key)]
    with serving(*words, "--user", "ada:operator:ADA_TOKEN", ADA_TOKEN=TOKEN) as (_, address):
        base = f"https://localhost:{urlsplit(address).port}"
        with httpx.Client(base_url=base, verify=ssl.create_default_context(cafile=certificate)) as client:
            wrong = client.post("/sign-in", data={"token": "another-token-here"}, headers={"origin": base})
            foreign = client.post("/sign-in", data={"token": TOKEN}, headers={"origin": "https://localhost:1"})
            entered = client.post("/sign-in", data={"token": TOKEN}, headers={"origin": base})
            page = client.get("/browser")

    assert address.startswith("https://0.0.0.0:")
    assert (wrong.status_code, foreign.status_code, entered.status_code) == (403, 403, 200)
    assert re.match(r"__Host-neuroscript-\d+=.*; SameSite=Strict; Secure$", entered.headers["set-cookie"])
    assert "ada" in page.text
    assert "operator: also runs tools and plans" in page.text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["--bind", "0.0.0.0"],
            "an address that other machines can reach requires --certificate FILE, or --plain-http behind a proxy that "
            "encrypts",
        ),
        (
            ["--bind", "0.0.0.0", "--plain-http"],
            "an address that other machines can reach requires users; add --user NAME:ROLE:VARIABLE",
        ),
        (["--certificate-key", "key.pem"], "--certificate-key needs --certificate"),
        (
            ["--user", "ada:viewer:NOT_SET_ANYWHERE"],
            "--user ada: the environment variable must contain a token of at least 16 characters",
        ),
        (["--certificate", "missing.pem"], "the certificate or its key cannot be used (FileNotFoundError)"),
    ],
)
def test_unsafe_or_invalid_options_are_refused(words: list[str], expected: str) -> None:
    """Nothing is served."""
    result = run_installed("web", "--port", "0", *words)

    assert (result.code, result.err) == (2, f"neuroscript: {expected}\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--user", "ada"], "argument --user: expected NAME:ROLE:VARIABLE, where ROLE is viewer, operator or approver"),
        (["--port", "70000"], "argument --port: expected a port from 0 to 65535"),
    ],
)
def test_invalid_arguments_are_named(words: list[str], expected: str) -> None:
    """With exit code 2."""
    result = run_installed("web", *words)

    assert result.code == 2
    assert expected in result.err


PLUGIN = '''
from pathlib import Path

from neuroscript import ToolPolicy


def register(registrar):
    tools = registrar.toolset("p")

    @tools.tool(policy=ToolPolicy(requires_approval=True, effects=("deletes",)))
    def delete(path: str) -> str:
        """Delete a file of the shop."""
        with Path(__file__).with_name("ran").open("a") as file:
            print(path, file=file)
        return f"deleted {path}"
'''


def test_call_suspended_by_another_command_is_approved_in_the_console(tmp_path: Path) -> None:
    """It runs once in the process of the console."""
    plugin, directory = tmp_path / "tools.py", tmp_path / "approvals"
    plugin.write_text(PLUGIN)
    suspended = run_installed("call", "-p", str(plugin), "--suspend", str(directory), "p.delete", "a")
    (path,) = directory.glob("*.json")
    with (
        serving("-p", str(plugin), "--approvals", str(directory)) as (_, link),
        httpx.Client(base_url=link.partition("/enter")[0], follow_redirects=True) as client,
    ):
        client.get(link)
        page = client.get("/approvals").text
        csrf, digest = (re.findall(rf'name="{name}" value="([^"]+)"', page)[-1] for name in ("csrf", "digest"))
        data = {"csrf": csrf, "digest": digest, "verdict": "approve"}
        base = str(client.base_url).rstrip("/")
        done = client.post(f"/approvals/stored/{path.name}", data=data, headers={"origin": base})

    assert (4, False, "a\n") == (suspended.code, path.exists(), (tmp_path / "ran").read_text())
    assert "deleted a" in done.text


def test_chat_needs_a_model(server: ModelServer) -> None:
    """With a model, the console has a chat; otherwise there is no entry for it."""
    texts = []
    for words in ((), ("--model", "tiny", "--base-url", server.base_url())):
        with serving(*words) as (_, link), httpx.Client(base_url=link.partition("/enter")[0]) as client:
            client.get(link)
            texts.append(client.get("/chat").text)

    assert "This console has no model" in texts[0]
    assert ">Chat</a>" not in texts[0]
    assert "tiny may call" in texts[1]
