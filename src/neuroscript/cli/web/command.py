"""``neuroscript web``: serve the web console until the process receives a signal."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

from neuroscript.cli.env.choices import file_of
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.env.http_service import serve_http
from neuroscript.cli.terminal.exit_codes import OK, UsageError, require_extra
from neuroscript.cli.terminal.output import Output
from neuroscript.interop.http_server.addresses import is_loopback

if TYPE_CHECKING:
    from neuroscript.console.users import User

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
    _check(options)
    users = _users(options)
    output.serve()
    with redirect_stdout(sys.stderr), open_engine(make_engine, output, options) as engine:
        application = app(engine, is_local=is_loopback(options.bind), users=users, **_parts(options))
        certificate = None if options.certificate is None else (options.certificate, options.certificate_key)
        path = application.link() if application.console.settings.is_local else "/"
        serve_http(application, engine, (options.bind, options.port), output, path, certificate)
    return OK


def _parts(options: Namespace) -> dict[str, Any]:
    """Return what the console shows besides tools."""
    return {
        "run_effects": options.run_effects,
        "plans": options.plans,
        "runs": options.runs,
        "approvals": options.approvals,
        "policy_file": file_of(vars(options)),
        "audit": [options.audit] if options.audit is not None else [],
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
