"""``neuroscript gateway``: serve the clients of a gateway, review its servers, or configure a client."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterable
from typing import Any, TypeVar

from neuroscript.cli.env.http_service import interrupt_on_sigterm, serve_http
from neuroscript.cli.env.mcp_servers import secrets_of
from neuroscript.cli.env.stdio_service import serve_stdio
from neuroscript.cli.terminal.exit_codes import OK, UsageError, require_extra
from neuroscript.cli.terminal.logger import logger_for
from neuroscript.cli.terminal.output import Output
from neuroscript.config.gateway_file import ClientTable, GatewayFile, load_gateway
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import quote_untrusted

Named = TypeVar("Named")


def run(options: Namespace, output: Output, make_engine: Any = None) -> int:
    """Serve until the client disconnects or the process receives a signal.

    Raises:
        UsageError: The SDK is not installed, a client or a server is unknown, or the address cannot be used.
        SpecError: The file cannot be read or is invalid, with every problem found.
    """
    file = load_gateway(options.file, profile=options.profile)
    if options.review is not None or options.accept is not None:
        return _review(file, options, output)
    client = _client(file, options)
    if options.client_config is not None:
        return _print_config(file, client, options, output)
    with require_extra():
        from neuroscript.gateway.gateway import Gateway
    output.serve()
    interrupt_on_sigterm()  # servers are started before the gateway serves
    with require_extra(), Gateway(file, os.environ, logger_for(output)) as gateway:
        if file.settings.listen is None:
            chosen = next(iter(gateway.clients.values())) if client is None else gateway.clients[client.name]
            serve_stdio(chosen.service, gateway)
        else:
            from neuroscript.gateway.http import app
            from neuroscript.interop.mcp.server.http import PATH

            serve_http(app(gateway), gateway, file.settings.listen, output, PATH)
    return OK


def _review(file: GatewayFile, options: Namespace, output: Output) -> int:
    """Show the tools of a server, and accept them with ``--accept``."""
    from neuroscript.cli.mcp.tools import review

    servers = {each.name: each for each in file.servers}
    name = options.review if options.accept is None else options.accept
    table = _found(name, servers.get(name), servers, "server", "mcp")
    missing = sorted(table.secrets - secrets_of([table]).keys())
    if missing:
        raise UsageError(f"mcp.{name}: these environment variables are not set, or too short: {', '.join(missing)}")
    return review(table, output, accept=options.accept is not None)


def _client(file: GatewayFile, options: Namespace) -> ClientTable | None:
    """Return the client of ``--client``, or the only one; None if the file has no clients."""
    clients = {each.name: each for each in file.clients}
    if options.client is not None:
        if file.settings.listen is not None and options.client_config is None:
            raise UsageError("--client selects the client over stdin and stdout, but listen serves HTTP")
        return _found(options.client, clients.get(options.client), clients, "client", "client")
    if len(clients) > 1 and (file.settings.listen is None or options.client_config is not None):
        raise UsageError(f"the file has several clients; select one with --client: {', '.join(clients)}")
    return next(iter(clients.values()), None)


def _found(name: str, found: Named | None, known: Iterable[str], what: str, table: str) -> Named:
    if found is None:
        hint = did_you_mean(name, known)
        raise UsageError(f"unknown {what} {quote_untrusted(name)}; the file has no table {table}.NAME for it{hint}")
    return found


def _print_config(file: GatewayFile, client: ClientTable | None, options: Namespace, output: Output) -> int:
    """Print the configuration for a program, and on stderr the file that it belongs in."""
    from neuroscript.interop.mcp.server.client_config import CLIENTS, HTTP, http_snippet, snippet

    program, name, listen = options.client_config, file.settings.name, file.settings.listen
    if listen is None:
        words = ["-m", "neuroscript", "gateway", os.path.abspath(options.file)]  # noqa: PTH100
        words += [] if options.profile is None else ["--profile", options.profile]
        words += [] if client is None else ["--client", client.name]
        data = snippet(program, name, sys.executable, words)
    elif program not in HTTP:
        raise UsageError(f"{program} only starts servers; remove listen to serve it over stdin and stdout")
    else:
        host = f"[{listen[0]}]" if ":" in listen[0] else listen[0]
        variable = "" if client is None or client.token is None else client.token.name
        data = http_snippet(program, name, f"http://{host}:{listen[1]}/mcp", variable)
    output.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    output.say(f"add this to {CLIENTS[program][1]}")
    return OK
