"""Users with the access tokens of an issuer, behind a gateway, beside clients with tokens of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from tests.gateway.place import TOKENS, Place, running, scripted, server_table, tool
from tests.interop.oauth_issuer import Issuer, issuing
from tests.interop.oauth_place import Protected, names, result

from neuroscript import SpecError
from neuroscript.config.gateway_file import load_gateway

AUDIENCE = "https://gateway.example.com/mcp"
SETTINGS = """
[policy]
grants = ["mcp:call:**"]
limits = {calls = 100}

[gateway]
listen = "127.0.0.1:0"
issuer = "ISSUER"
audience = "https://gateway.example.com/mcp"

[client.readers]
scopes = ["read", "all"]
allow = ["files.read*"]

[client.writers]
scopes = ["write", "all"]
allow = ["files.write"]
limits = {calls = 2}

[client.alice]
token = {secret = "ALICE"}
allow = ["files.read"]
"""


@attrs.frozen(eq=False)
class Users:
    """A running gateway with its issuer."""

    place: Place
    issuer: Issuer

    def post(self, scope: str, method: str = "tools/list", params: Any = None, **claims: Any) -> Any:
        """Send a request with an access token, and return the response."""
        token = self.issuer.token(claims.pop("audience", AUDIENCE), scope=scope, **claims)
        return self._protected.post(token, method, params)

    def call(self, scope: str, name: str, **claims: Any) -> Any:
        return self.post(scope, "tools/call", {"name": name, "arguments": {}}, **claims)

    @property
    def _protected(self) -> Protected:
        port = httpx2.URL(self.place.url).port
        assert port is not None
        return Protected(self.issuer, self.place.gateway.engine, None, port, AUDIENCE)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    directory = tmp_path_factory.mktemp("gateway")
    command = scripted(directory, "files", [tool("read"), tool("write"), tool("remove")])
    with issuing() as issuer:
        text = SETTINGS.replace("ISSUER", issuer.url) + server_table("files", command)
        with running(directory, text) as place:
            yield Users(place, issuer)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("read", ["files__read"]),
        ("write", ["files__write"]),
        ("read write", ["files__read", "files__write"]),
        ("all", ["files__read", "files__write"]),
    ],
)
def test_a_user_has_the_sum_of_its_clients(users: Users, scope: str, expected: list[str]) -> None:
    """Each table with one of the scopes of the token; never more."""
    assert names(users.post(scope)) == expected


def test_tokens_of_clients_still_work(users: Users) -> None:
    """Beside those of an issuer."""
    assert users.place.tools("alice") == ["files__read"]


def test_a_token_without_a_client_is_refused(users: Users) -> None:
    """Its sender learns the scopes; a token for another server, and none at all, are refused before."""
    other, foreign = users.post("other"), users.post("read", audience="https://other.example.com")
    nothing = httpx2.post(users.place.url, json={}, trust_env=False)

    assert (other.status_code, foreign.status_code, nothing.status_code) == (403, 401, 401)
    assert 'scope="read all write"' in other.headers["www-authenticate"]
    assert "https://gateway.example.com/.well-known/oauth-protected-resource/mcp" in nothing.headers["www-authenticate"]
    found = httpx2.get(users.place.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"), trust_env=False)
    assert found.json()["authorization_servers"] == [users.issuer.url]


def test_limits_count_for_each_user(users: Users) -> None:
    """What one user has called does not count for another."""
    ada = [result(users.call("write", "files__write")).get("isError", False) for _ in range(3)]
    eve = result(users.call("write", "files__write", sub="eve"))

    assert ada == [False, False, True]
    assert not eve.get("isError", False)


def test_a_user_reads_nothing_of_the_operator(users: Users) -> None:
    """Neither the states of the servers nor metrics."""
    token = users.issuer.token(AUDIENCE, scope="all")
    url = users.place.url.replace("/mcp", "/health/servers")

    assert httpx2.get(url, headers={"Authorization": f"Bearer {token}"}, trust_env=False).status_code == 403
    assert TOKENS


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('listen = "127.0.0.1:0"\n', ""), "gateway.issuer: access tokens are sent over HTTP; set listen"),
        (
            ('audience = "https://gateway.example.com/mcp"\n', ""),
            "gateway.issuer: needs audience, the URL of the gateway as its clients know it",
        ),
        (
            ('issuer = "https://id.example.com"\n', ""),
            "gateway.audience: needs issuer, the issuer of the access tokens",
        ),
        (("scopes =", "# scopes ="), "gateway.issuer: permits nothing; set scopes in a table [client.NAME]"),
    ],
)
def test_settings_that_need_each_other(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    """Are checked when the file is loaded."""
    file = tmp_path / "gateway.toml"
    file.write_text(SETTINGS.replace("ISSUER", "https://id.example.com").replace(*change))
    with pytest.raises(SpecError) as raised:
        load_gateway(file)

    assert problem in raised.value.problems
