"""The tables of this package, and how those of an earlier version are changed into the current ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from neuroscript.errors import SpecError
from neuroscript.state import processes
from neuroscript.state.database import Database, Statements

LOCK: Final = 0x6E65_7573
"""The PostgreSQL advisory lock that lets one process at a time create or change the tables."""

Migration = Callable[[Database, Statements], None]


def _version_1(database: Database, statements: Statements) -> None:
    for table in (*processes.TABLES,):
        statements.run(table)


MIGRATIONS: Final[tuple[Migration, ...]] = (_version_1,)
"""What changes the tables of each version into those of the next one; the first starts without tables."""


def migrate(database: Database) -> None:
    """Create the tables of a database, or change those of an earlier version.

    Raises:
        SpecError: If a later version of neuroscript has changed the tables.
        StateUnavailable: If the database cannot be used.
    """
    if _exists(database) and _version(database) == len(MIGRATIONS):
        return
    with database.transaction() as statements:
        if database.kind == "postgresql":
            statements.run("SELECT pg_advisory_xact_lock(?)", (LOCK,))
        statements.run("CREATE TABLE IF NOT EXISTS neuroscript_state (version INTEGER NOT NULL)")
        version = _version(statements)
        if version > len(MIGRATIONS):
            text = (
                f"its tables have version {version}, and this neuroscript knows only versions up to {len(MIGRATIONS)}"
            )
            raise SpecError(database.name, [f"{text}; update neuroscript here"])
        for change in MIGRATIONS[version:]:
            change(database, statements)
        statements.run("DELETE FROM neuroscript_state")
        statements.run("INSERT INTO neuroscript_state (version) VALUES (?)", (len(MIGRATIONS),))


def _exists(database: Database) -> bool:
    if database.kind == "postgresql":
        return database.run("SELECT to_regclass('neuroscript_state')") != [(None,)]
    return bool(database.run("SELECT 1 FROM sqlite_master WHERE name = 'neuroscript_state'"))


def _version(statements: Statements) -> int:
    """Return the version of the tables, or 0 if there are none."""
    rows = statements.run("SELECT max(version) FROM neuroscript_state")
    return int(rows[0][0] or 0)
