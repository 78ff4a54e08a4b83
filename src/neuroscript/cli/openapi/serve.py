"""``neuroscript openapi serve``: serve tools over HTTP, described by an OpenAPI document."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import redirect_stdout

from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.cli.env.authorization import authenticator, check_options, scope_tables
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.env.http_service import serve_http, token_of
from neuroscript.cli.terminal.exit_codes import OK, require_extra
from neuroscript.cli.terminal.output import Output
from neuroscript.interop.http_server.addresses import is_loopback


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Serve the tools until the process receives a signal.

    Raises:
        UsageError: The extra is not installed, the address cannot be used, or a token is missing or invalid.
        SpecError: A pattern matches no tool that may be called, or an option about access tokens is invalid.
    """
    with require_extra():
        from neuroscript.interop.openapi.serve import DOCUMENT_PATH, app
    check_options(options)
    token = token_of(options)
    scopes, access_tokens = scope_tables(options, make_engine is None), authenticator(options)
    output.serve()
    asking = reject if options.suspend is None else None
    with redirect_stdout(sys.stderr), open_engine(make_engine, output, options, asking) as engine:
        with require_extra():
            application = app(
                engine,
                tools=options.tools or "*",
                title=options.title,
                token=token,
                authenticator=access_tokens,
                scopes=scopes,
                origins=options.origin,
                is_local=is_loopback(options.http[0]),
            )
        serve_http(application, engine, options.http, output, DOCUMENT_PATH)
    return OK


def reject(request: ApprovalRequest) -> Approval:
    """Reject a call that needs approval; an approver."""
    return Approval.reject("no user can be asked over HTTP")
