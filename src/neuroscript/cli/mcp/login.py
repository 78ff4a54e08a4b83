"""``neuroscript mcp login`` and ``mcp logout``: the access tokens of the user for MCP servers."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from neuroscript.cli.env.choices import file_in_use
from neuroscript.cli.env.mcp_servers import secrets_of, tables
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError, require_extra
from neuroscript.cli.terminal.output import Output
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.config.oauth import OAuth
from neuroscript.errors import SpecError
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import quote_untrusted


def run(options: Namespace, output: Output, make_engine: Any = None) -> int:
    """Log in or out, and return 0; a logout without tokens returns 1.

    Raises:
        UsageError: The server is unknown, or does not use OAuth.
        SpecError: The policy file cannot be read, or the URL is invalid.
        PluginError: ``mcp.login``: the login failed.
    """
    with require_extra():
        from neuroscript.interop.mcp import login, logout
    url, oauth = _server(options, make_engine is None, output)
    shown_name = quote_untrusted(options.name or url)
    if options.action == "logout":
        if not logout(url, oauth):
            output.say(f"{shown_name}: there are no access tokens")
            return FAILED
        output.say(f"{shown_name}: the access tokens are removed; the issuer may accept them until they expire")
        return OK

    def show(page: str) -> None:
        output.say(f"log in at {page}")
        if options.browser:
            from neuroscript.interop.mcp.client.login import open_browser

            open_browser(page)

    login(url, oauth, show=show, **({} if options.timeout is None else {"timeout": options.timeout}))
    output.say(f"{shown_name}: logged in")
    return OK


def _server(options: Namespace, is_own: bool, output: Output) -> tuple[str, OAuth]:
    """Return the URL of the server, and how to get tokens, from the policy file or from the option."""
    if options.name is None:
        if not options.url:
            raise UsageError("expected the NAME of a server in the policy file, or --url URL")
        return options.url, OAuth()
    if options.url:
        raise UsageError("NAME cannot be combined with --url")
    found = {each.name: each for each in tables(vars(options), is_own, output)}
    table = found.get(options.name)
    if table is None:
        if file_in_use(vars(options), is_own) is None:
            raise UsageError("NAME is a server in a policy file, but there is no policy file; add --policy FILE")
        name = quote_untrusted(options.name)
        raise UsageError(f"unknown server {name} in the policy file{did_you_mean(options.name, found)}")
    if table.oauth is None:
        raise UsageError(f"mcp.{table.name} does not use OAuth; add 'oauth = true' to its table")
    return table.url, _with_secret(table, table.oauth)


def _with_secret(table: ServerTable, oauth: OAuth) -> OAuth:
    from neuroscript.interop.mcp.client.location import resolve_client_secret

    faults: list[str] = []
    found = resolve_client_secret(oauth, secrets_of([table]), faults)
    if faults:
        raise SpecError(f"mcp.{table.name}", faults)
    return found
