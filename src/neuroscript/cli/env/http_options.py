"""Options of the commands that serve over HTTP."""

from __future__ import annotations

import argparse
from typing import Final

ADDRESS: Final = "127.0.0.1:8000"
"""The default address of ``--http``."""


def add_access(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Add the options that decide who may access a service.

    Args:
        note: What ends the help of each option.
    """
    text = f"require the token in this environment variable{note}"
    parser.add_argument("--token-env", metavar="VARIABLE", help=text)
    text = f"accept web pages of this origin too{note}"
    parser.add_argument("--origin", metavar="ORIGIN", action="append", default=[], help=text)


def address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address.

    Raises:
        argparse.ArgumentTypeError: It is not a valid address.

    >>> address("[::1]:8000")
    ('::1', 8000)
    """
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"expected an address such as {ADDRESS}")
    return host.removeprefix("[").removesuffix("]"), int(port)
