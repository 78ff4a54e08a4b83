"""The file with the tokens for one server: private, written atomically, and locked between processes."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Final

from neuroscript.errors import SpecError, ToolFailed
from neuroscript.io.private_files import WRITING, read_private
from neuroscript.io.user_cache import data_file

try:
    import fcntl
except ImportError:  # Windows, where several processes may refresh one token
    fcntl = None  # type: ignore[assignment]

DIRECTORY: Final = "oauth"
"""The directory of the files, in the user's data."""

SUBJECT: Final = "the file with the tokens"
"""The name of a file in errors."""

MAX_FILE_BYTES: Final = 1024 * 1024
"""Maximum size of a file, in bytes."""

LOCK_SECONDS: Final = 60.0
"""Maximum time to wait while another process gets a token, in seconds."""

LOCK_POLL_SECONDS: Final = 0.02
"""Interval between two attempts to lock the file, in seconds."""


class TokenFile:
    """The registration of this client, and its tokens, for one server.

    Args:
        path: The path of the file; it need not exist.
        server: The URL of the server, which the file must name.
    """

    def __init__(self, path: Path, server: str) -> None:
        self.path = path
        self._server = server

    @classmethod
    def of(cls, server: str, issuer: str = "", client: str = "") -> TokenFile:
        """Return the file in the user's data for a server.

        Args:
            server: The URL of the server.
            issuer: The only issuer whose tokens are used, or ``""``.
            client: The id of the client that was registered in advance, or ``""``.

        Raises:
            SpecError: The environment defines no directory for the user's data.
        """
        digest = sha256("\n".join((server, issuer, client)).encode()).hexdigest()
        path = data_file(f"{DIRECTORY}/{digest[:32]}.json")
        if path is None:
            raise SpecError("oauth", ["this environment has no directory for the user's data"])
        return cls(Path(path), server)

    def read(self) -> dict[str, Any]:
        """Return the content, or an empty dict if the file does not exist or belongs to another server.

        Raises:
            SpecError: Other users can access the file, or it cannot be read.
        """
        try:
            data = read_private(self.path, SUBJECT, MAX_FILE_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SpecError(SUBJECT, [f"cannot be read ({type(error).__name__})"]) from None
        try:
            found = json.loads(data)
        except ValueError:
            return {}
        return found if isinstance(found, dict) and found.get("server") == self._server else {}

    def write(self, content: Mapping[str, Any]) -> None:
        """Replace the content atomically; only the owner can read the file.

        Raises:
            OSError: The file cannot be written.
        """
        self._make_directory()
        unfinished = self.path.with_name(f".{os.urandom(8).hex()}.tmp")
        try:
            with os.fdopen(os.open(unfinished, WRITING, 0o600), "wb") as file:
                file.write(json.dumps({"server": self._server, **content}).encode())
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self.path)
        finally:
            unfinished.unlink(missing_ok=True)

    def delete(self) -> bool:
        """Remove the file, and return whether it existed."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True

    def _make_directory(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Keep other processes from getting a token meanwhile, because an issuer accepts a refresh token once.

        Raises:
            ToolFailed: ``mcp.login``: another process holds the lock for too long.
        """
        if fcntl is None:
            yield
            return
        self._make_directory()
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = monotonic() + LOCK_SECONDS
            while not _is_locked(descriptor):
                if monotonic() > end:
                    text = "another process is getting an access token for the server"
                    raise ToolFailed(text, code="mcp.login", retry="later")
                await asyncio.sleep(LOCK_POLL_SECONDS)
            yield
        finally:
            os.close(descriptor)  # which releases the lock


def _is_locked(descriptor: int) -> bool:
    """Lock a file if no other process has locked it, and return whether it is locked now."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
