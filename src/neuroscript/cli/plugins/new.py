"""``neuroscript new``: create a new distribution."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.plugins.publisher_options import KINDS
from neuroscript.cli.terminal.exit_codes import OK, UsageError
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_path
from neuroscript.publishing.scaffold import create, derive_names, install_command


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Write the distribution, print the next step, and return the exit code.

    Raises:
        UsageError: There is no kind, or the files cannot be written.
        SpecError: A name or the directory is invalid; the error lists every problem.
    """
    if options.kind is None:
        raise UsageError(f"expected a kind: {', '.join(KINDS)} (see neuroscript new --help)")
    directory = None if options.directory is None else Path(options.directory)
    try:
        root = create(options.name, directory, group=options.group, author=options.author)
    except SpecError:
        raise
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        where = quote_path(options.directory or options.name)
        raise UsageError(f"cannot write {where}: {reason_of(error)}") from None
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    names = derive_names(options.name, options.group)
    if options.json:
        data = {"distribution": names.distribution, "module": names.module, "group": names.group}
        output.json({"directory": str(root), **data, "files": files})
        return OK
    place = options.directory or names.distribution
    output.text(f"{place}: {len(files)} files, with the package {names.module} and the tools {names.group}.*")
    output.text(f"next: cd {place} && {install_command(with_wheel=False)} && pytest")
    return OK
