"""The state that the engines of an application share."""

from __future__ import annotations

from functools import cached_property
from types import TracebackType
from typing import Final, Self

from neuroscript.coercion.parameters import COUNT, NUMBER, SECONDS, STRING, Form, require
from neuroscript.errors import SpecError
from neuroscript.state.database import StateUnavailable, open_database
from neuroscript.state.heartbeat import DEFAULT_LEASE_SECONDS, parse_lease
from neuroscript.state.processes import Process
from neuroscript.state.schema import migrate

MAX_NAMESPACE_CHARS: Final = 200

NAMESPACE: Final = Form(
    f"1 to {MAX_NAMESPACE_CHARS} printable characters",
    STRING.accepts,
    lambda name: 1 <= len(name) <= MAX_NAMESPACE_CHARS and name.isprintable(),
)


class SharedState:
    """A database that the processes of an application share, for ``Engine(state=…)``. Several engines may use one.

    Args:
        url: ``sqlite:///FILE`` for the processes of one machine, or ``postgresql://USER@HOST/NAME``, which needs the
            extra ``state``. Tables are created if they are missing.
        namespace: The name of the application; applications with different names share nothing.
        connections: How many connections to PostgreSQL this process may have open at once.
        timeout: Seconds that one access may take. When the database does not answer in time, calls that need it are
            refused.
        lease: Seconds without a heartbeat after which a process counts as dead and what it holds is free.

    Raises:
        SpecError: If a parameter is invalid or the database cannot be used.
        ModuleNotFoundError: If the extra ``state`` is needed and not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        namespace: str = "default",
        connections: int = 10,
        timeout: float = 5.0,
        lease: float = DEFAULT_LEASE_SECONDS,
    ) -> None:
        given = {"url": (url, STRING), "namespace": (namespace, NAMESPACE), "connections": (connections, COUNT)}
        require("SharedState", **given, timeout=(timeout, SECONDS), lease=(lease, NUMBER))
        self.namespace = namespace
        self._lease = parse_lease(lease, "SharedState")
        self.database = open_database(url, connections=connections, timeout=timeout)
        try:
            migrate(self.database)
        except StateUnavailable as error:
            self.database.close()
            raise SpecError(self.database.name, [f"cannot be used as a database: {error}"]) from None
        except BaseException:
            self.database.close()
            raise

    @property
    def name(self) -> str:
        """The address without passwords."""
        return self.database.name

    @cached_property
    def process(self) -> Process:
        """This process as a member of the namespace."""
        return Process(self.database, self.namespace, self._lease)

    def close(self) -> None:
        """Leave the namespace and close the connections."""
        if "process" in self.__dict__:
            self.process.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
