"""``neuroscript mcp serve``: serve tools to MCP clients over stdin and stdout, or over HTTP."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from neuroscript.cli.env.authorization import authenticator, check_options, scope_tables
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.env.http_service import serve_http, token_of
from neuroscript.cli.env.stdio_service import serve_stdio
from neuroscript.cli.terminal.exit_codes import OK, UsageError, require_extra
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.engine import Engine
from neuroscript.interop.http_server.addresses import is_loopback

MAX_KEY_FILE_BYTES: Final = 64 * 1024
"""Maximum size of a file with keys, in bytes."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Serve the tools until the client disconnects or the process receives a signal.

    Raises:
        UsageError: The SDK is not installed, an address cannot be used, a token is missing, or a key is invalid.
    """
    with require_extra():
        from neuroscript.interop.mcp import ask_client, serve
        from neuroscript.interop.mcp.server.serve import Service  # noqa: F401
    check_options(options)
    token, states = token_of(options), _states(options)
    scopes, access_tokens = scope_tables(options, make_engine is None), authenticator(options)
    asking = ask_client if options.suspend is None else None
    output.serve()
    with open_engine(make_engine, output, options, asking) as engine:
        tools = options.tools or "*"
        service = serve(
            engine,
            tools=tools,
            name=options.name,
            names=options.names,
            states=states,
            tasks=options.tasks,
            resources=options.resources,
            scopes=scopes,
            search_above=options.search_above,
        )
        if options.http is None:
            serve_stdio(service, engine)
        else:
            _over_http(service, engine, options, {"token": token, "authenticator": access_tokens}, output)
    return OK


def _states(options: Namespace) -> Any:
    """Return how request states are protected."""
    from neuroscript.interop.mcp import RequestStates, UsedStatesInFile

    keys = (*_keys_of_variable(options.state_key_env), *_keys_of_file(options.state_key_file))
    if options.used_states is None:
        return RequestStates(keys=keys)
    return RequestStates(keys=keys, used=UsedStatesInFile(options.used_states))


def _keys_of_variable(name: str | None) -> list[str]:
    keys = [] if name is None else os.environ.get(name, "").split()
    if name is not None and not keys:
        raise UsageError("the variable in --state-key-env is not set, or is empty")
    return keys


def _keys_of_file(name: str | None) -> list[str]:
    if name is None:
        return []
    from neuroscript.io.private_files import read_private

    try:
        keys = read_private(Path(name), "--state-key-file", MAX_KEY_FILE_BYTES).decode().split()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file in --state-key-file cannot be read ({type(error).__name__})") from None
    if not keys:
        raise UsageError("the file in --state-key-file is empty")
    return keys


def _over_http(
    service: Any, engine: Engine, options: Namespace, credentials: Mapping[str, Any], output: Output
) -> None:
    from neuroscript.interop.mcp.server.http import PATH, app

    application = app(service, **credentials, origins=options.origin, is_local=is_loopback(options.http[0]))
    serve_http(application, engine, options.http, output, PATH)
