"""``neuroscript index``: write the tool index of a distribution, so that engines need not load it first."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from neuroscript.cli.plugins.command import find_distribution
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.discovery.installed import Distribution, installed_distributions
from neuroscript.discovery.package_index import FILE, index_to_data, is_computed
from neuroscript.discovery.probe import TIMEOUT_SECONDS, Report, probe_all
from neuroscript.io.text import quote_path
from neuroscript.io.text_files import write_atomically
from neuroscript.io.user_cache import read_json


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """Write the index of an installed distribution, or with ``--check`` only check that it is current.

    Raises:
        UsageError: The distribution is unknown or has no package for its index, or the index cannot be written.
        PluginError: The distribution cannot be used.
    """
    distribution = find_distribution(installed_distributions(), options.name)
    if is_computed(distribution):
        raise UsageError(f"{distribution} computes its toolsets, so it cannot have an index in its package")
    (report,) = probe_all([distribution], TIMEOUT_SECONDS)
    if not report.is_usable:
        raise report.error()
    file = Path(options.output) if options.output is not None else _index_path(distribution, report)
    index = index_to_data(distribution, report.entries)
    is_current = read_json(str(file)) == index
    if not (options.check or is_current):
        _write(file, index)
    if options.json:
        output.json({"file": str(file), "tools": len(report.tools), "was_current": is_current})
    elif options.check:
        output.write(f"{quote_path(str(file))} {'is current' if is_current else 'does not match the code'}\n")
    else:
        output.write(f"{quote_path(str(file))}: {len(report.tools)} tools\n")
    return FAILED if options.check and not is_current else OK


def _index_path(distribution: Distribution, report: Report) -> Path:
    """Return the path of the index in the package that ships it."""
    for root in report.roots:
        if os.path.isdir(root):  # noqa: PTH112
            return Path(root, FILE)
    raise UsageError(f"{distribution} has no package for its index; add --output FILE")


def _write(file: Path, index: Any) -> None:
    import json

    try:
        write_atomically(file, f"{json.dumps(index, indent=1)}\n")
    except OSError as error:
        raise UsageError(f"cannot write {quote_path(str(file))}: {reason_of(error)}") from None
