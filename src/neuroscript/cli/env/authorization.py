"""Options of services about access tokens: their issuer, and what each scope permits."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import Any, Final

from neuroscript.cli.env.choices import file_in_use
from neuroscript.cli.terminal.exit_codes import UsageError, require_extra
from neuroscript.io.text import quote_untrusted

NEEDS_ISSUER: Final = ("audience", "required_scope", "scope", "scope_profile")
"""The options that need ``--issuer``."""


def add_authorization(parser: Any, note: str = "") -> None:
    """Add the options to a command that serves over HTTP.

    Args:
        note: What ends the title of the options.
    """
    group = parser.add_argument_group(f"access tokens{note}")
    group.add_argument("--issuer", metavar="URL", help="require access tokens that this issuer has signed")
    group.add_argument("--audience", metavar="URL", help="the URL of this server, for which its tokens are issued")
    group.add_argument(
        "--required-scope", metavar="SCOPE", action="append", default=[], help="refuse tokens without this scope"
    )
    group.add_argument(
        "--scope",
        metavar="SCOPE=PATTERN",
        action="append",
        default=[],
        type=pair,
        help="permit matching tools to tokens with this scope, such as 'notes:read=notes.read_*'",
    )
    group.add_argument(
        "--scope-profile",
        metavar="SCOPE=PROFILE",
        action="append",
        default=[],
        type=pair,
        help="permit what a profile of the policy file permits to tokens with this scope",
    )


def pair(text: str) -> tuple[str, str]:
    """Return a scope and what it permits.

    Raises:
        argparse.ArgumentTypeError: One of them is missing.

    >>> pair("notes:read=notes.read_*")
    ('notes:read', 'notes.read_*')
    """
    scope, _, value = text.rpartition("=")
    if not scope or not value:
        raise argparse.ArgumentTypeError("expected a scope and what it permits, such as notes:read=notes.read_*")
    return scope, value


def check_options(options: Namespace) -> None:
    """Check options that need each other.

    Raises:
        UsageError: One of them is missing, or they exclude each other.
    """
    given = [name for name in NEEDS_ISSUER if getattr(options, name)]
    if options.issuer is None:
        if given:
            raise UsageError(f"--{given[0].replace('_', '-')} needs --issuer URL")
        return
    if options.http is None:
        raise UsageError("--issuer needs HTTP; add --http")
    if options.audience is None:
        raise UsageError("--issuer needs --audience URL, the URL of this server as its clients know it")
    if options.token_env is not None:
        raise UsageError("--issuer and --token-env exclude each other")


def scope_tables(options: Namespace, is_own: bool) -> dict[str, Any] | None:
    """Return what each scope permits, or None without such options.

    Raises:
        UsageError: A scope has two profiles, or there is no policy file.
        SpecError: The policy file has no such profile.
    """
    if not options.scope and not options.scope_profile:
        return None
    tables: dict[str, Any] = {}
    for scope, pattern in options.scope:
        tables.setdefault(scope, {"allow": ()})
        tables[scope] = {"allow": (*tables[scope]["allow"], pattern)}
    for scope, profile in options.scope_profile:
        if scope in tables:
            raise UsageError(
                f"the scope {quote_untrusted(scope)} has two meanings; use --scope or --scope-profile once"
            )
        tables[scope] = _profile(options, profile, is_own)
    return tables


def _profile(options: Namespace, profile: str, is_own: bool) -> dict[str, Any]:
    from neuroscript.config.policy_file import load_profile

    file = file_in_use(vars(options), is_own)
    if file is None:
        raise UsageError("--scope-profile needs a policy file; add --policy FILE")
    return load_profile(file, profile)


def authenticator(options: Namespace) -> Any:
    """Return what verifies access tokens, or None without ``--issuer``.

    Raises:
        SpecError: An option is invalid.
        UsageError: The extra is not installed.
    """
    if options.issuer is None:
        return None
    with require_extra():
        from neuroscript.interop.http_server.access_tokens import JWTAuthenticator

    return JWTAuthenticator(
        issuer=options.issuer, audience=options.audience, required_scopes=tuple(options.required_scope)
    )
