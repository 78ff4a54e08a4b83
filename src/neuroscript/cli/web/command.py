"""``neuroscript web``: serve the web console until the process receives a signal."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from neuroscript.cli.chat.conversation import open_model
from neuroscript.cli.chat.models import MODEL
from neuroscript.cli.doctor.command import run_checks
from neuroscript.cli.env.choices import file_of
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.env.http_service import serve_http
from neuroscript.cli.env.mcp_servers import tables
from neuroscript.cli.terminal.exit_codes import OK, UsageError, require_extra
from neuroscript.cli.terminal.inputs import key_of
from neuroscript.cli.terminal.output import Output
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.errors import LLMError
from neuroscript.interop.http_server.addresses import is_loopback

if TYPE_CHECKING:
    from neuroscript.console.users import User
    from neuroscript.llm.clients import Model

MIN_TOKEN_CHARS: Final = 16
"""Minimum number of characters of a user's token."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Serve the console until the process receives a signal.

    Raises:
        UsageError: The extra is not installed, or an option is missing or invalid.
        SpecError: The engine rejects an option.
    """
    with require_extra():
        from neuroscript.console.application import app
        from neuroscript.console.inbox import Inbox
    _check(options)
    users = _users(options)
    inbox = Inbox() if options.suspend is None else None
    output.serve()
    servers = tables(vars(options), make_engine is None, output)
    with (
        redirect_stdout(sys.stderr),
        _open_model(options) as model,
        open_engine(make_engine, output, options, inbox, model, servers) as engine,
    ):
        shown = _parts(options, servers, output)
        application = app(engine, is_local=is_loopback(options.bind), users=users, inbox=inbox, model=model, **shown)
        certificate = None if options.certificate is None else (options.certificate, options.certificate_key)
        path = application.link() if application.console.settings.is_local else "/"
        serve_http(application, engine, (options.bind, options.port), output, path, certificate)
    return OK


def _open_model(options: Namespace) -> AbstractContextManager[Model | None]:
    """Return the model for the chat, or None if no option and no environment variable selects one.

    Raises:
        UsageError: The model is unknown, there is no key for it, or a package is missing.
    """
    if not (options.model or options.base_url or os.environ.get(MODEL)):
        return nullcontext()
    try:
        return open_model(options)
    except LLMError as error:
        raise UsageError(str(error)) from None


def _parts(options: Namespace, servers: tuple[ServerTable, ...], output: Output) -> dict[str, Any]:
    """Return what the console shows besides tools."""
    return {
        "run_effects": options.run_effects,
        "plans": options.plans,
        "runs": options.runs,
        "approvals": options.approvals or options.suspend,
        "policy_file": file_of(vars(options)),
        "audit": [options.audit] if options.audit is not None else [],
        "audit_key": None if options.audit_key is None else key_of(options.audit_key, output),
        "servers": servers,
        "lock": options.locked,
        "checks": partial(run_checks, options),
    }


def _check(options: Namespace) -> None:
    """Check how the console can be reached.

    Raises:
        UsageError: Other machines can reach it without encryption or users, or an option has no effect.
    """
    if options.certificate_key is not None and options.certificate is None:
        raise UsageError("--certificate-key needs --certificate")
    if is_loopback(options.bind):
        return
    if options.certificate is None and not options.plain_http:
        text = "an address that other machines can reach requires --certificate FILE"
        raise UsageError(f"{text}, or --plain-http behind a proxy that encrypts")
    if not options.user:
        raise UsageError("an address that other machines can reach requires users; add --user NAME:ROLE:VARIABLE")


def _users(options: Namespace) -> list[User]:
    """Return the users of the options.

    Raises:
        UsageError: A token is missing or too short, or two users have the same name or token.
    """
    from neuroscript.console.users import User

    users: list[User] = []
    for name, role, variable in options.user:
        token = os.environ.get(variable, "").strip()
        if len(token) < MIN_TOKEN_CHARS:
            text = f"--user {name}: the environment variable must contain a token"
            raise UsageError(f"{text} of at least {MIN_TOKEN_CHARS} characters")
        if any(name == each.name or token == each.token for each in users):
            raise UsageError(f"--user {name}: another user has the same name or token")
        users.append(User(name, role, token))
    return users
