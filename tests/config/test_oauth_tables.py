"""Tables ``oauth`` of MCP servers in policy files."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuroscript import SpecError
from neuroscript.config.oauth import OAuth
from neuroscript.config.policy_file import load_servers
from neuroscript.tools.injection_sources import Secret

URL = 'url = "https://tools.example.com/mcp"'


def loaded(tmp_path: Path, *lines: str) -> OAuth | None:
    """Return what the only server in a file says."""
    file = tmp_path / "policy.toml"
    file.write_text("\n".join(("[mcp.notes]", *lines)))
    (table,) = load_servers(file)
    return table.oauth


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("timeout = 1", None),
        ("oauth = true", OAuth()),
        ('oauth = {scopes = ["a", "b"]}', OAuth(scopes=("a", "b"))),
        (
            'oauth = {client_id = "x", client_secret = {secret = "S"}, issuer = "https://i.example", redirect_port = 8_123}',
            OAuth(client_id="x", client_secret=Secret("S"), issuer="https://i.example", redirect_port=8_123),
        ),
    ],
)
def test_settings_are_read(tmp_path: Path, line: str, expected: OAuth | None) -> None:
    """``true`` stands for the defaults."""
    assert loaded(tmp_path, URL, line) == expected


def test_the_secret_of_a_client_is_a_secret_of_the_server(tmp_path: Path) -> None:
    """So that the command line reads it from the environment, and redacts it."""
    file = tmp_path / "policy.toml"
    file.write_text(
        f'[mcp.notes]\n{URL}\noauth = {{client_id = "x", client_secret = {{secret = "S"}}, issuer = "https://i.example"}}\n'
    )

    assert load_servers(file)[0].secrets == {"S"}


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        (
            (URL, "oauth = false"),
            ('mcp.notes.oauth: must be true, or a table such as {scopes = ["notes:read"]}',),
        ),
        (
            (URL, 'oauth = {client_secret = "s3cret", scopes = ["a b"], redirect_port = "x", scope = 1}'),
            (
                "mcp.notes.oauth.scope: unknown key; did you mean scopes?",
                "mcp.notes.oauth.scopes: must be an array of scopes, in brackets",
                "mcp.notes.oauth.redirect_port: must be a port from 0 to 65535",
                "mcp.notes.oauth: client_secret needs client_id and issuer",
            ),
        ),
        (
            (URL, 'oauth = {grant = "client_credentials"}'),
            ("mcp.notes.oauth: client_credentials needs client_id, client_secret and issuer",),
        ),
        (('command = ["x"]', "oauth = true"), ("mcp.notes: oauth cannot be used with command",)),
        (
            (URL, 'headers = {authorization = "Bearer x"}', "oauth = true"),
            ("mcp.notes: oauth cannot be used with the header Authorization",),
        ),
    ],
)
def test_every_problem_is_listed(tmp_path: Path, lines: tuple[str, ...], problems: tuple[str, ...]) -> None:
    """With its place, and without values."""
    with pytest.raises(SpecError) as raised:
        loaded(tmp_path, *lines)

    assert set(raised.value.problems) == set(problems)
    assert "s3cret" not in str(raised.value)
