"""``neuroscript plugins``: list, show and check installed plugins."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any, Final

from neuroscript.cli.env.choices import confined_imports, plugin_keywords, warn
from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.env.plugin_reports import Imports, contents, isolated_entries
from neuroscript.cli.plugins.options import ACTIONS
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import EMPTY, Output, Rows, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.discovery.catalog import check_distributions, select_offers
from neuroscript.discovery.installed import PLUGINS, TOOLSETS, Distribution, installed_distributions, normalize_name
from neuroscript.errors import PluginError
from neuroscript.io.near_names import near
from neuroscript.io.text import quote_untrusted

INDENT: Final = 2

ISOLATED: Final = "isolated: only worker processes import it"


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run an action of ``plugins`` and return the exit code.

    Raises:
        UsageError: There is no action, or the plugin is unknown.
    """
    if options.action is None:
        raise UsageError(f"expected an action: {', '.join(ACTIONS)} (see neuroscript plugins --help)")
    found = installed_distributions()
    keywords = plugin_keywords(vars(options))
    warn(keywords.get("without", []), output)
    taken, missing = _selected_distributions(found, keywords)
    for error in missing:
        output.say(f"warning: {error}")
    with confined_imports(vars(options)) as imports:
        match options.action:
            case "list":
                return _list(found, taken, imports, options, output)
            case "show":
                return _show(find_distribution(found, options.name), taken, imports, options, output)
            case "lock":
                from neuroscript.cli.plugins.lock import lock
                from neuroscript.config.lock_diff import Selection

                names = [find_distribution(taken, name).key for name in options.names]
                return lock(Selection(taken, keywords.get("without", ()), imports), names, options, output)
            case "diff":
                from neuroscript.cli.plugins.lock import diff
                from neuroscript.config.lock_diff import Selection

                return diff(found, Selection(taken, keywords.get("without", ()), imports), options, output)
            case _:
                wanted = [find_distribution(found, name).key for name in options.names]
                return _check([each for each in taken if not wanted or each.key in wanted], imports, options, output)


def _selected_distributions(
    found: Sequence[Distribution], keywords: dict[str, Any]
) -> tuple[Sequence[Distribution], Sequence[PluginError]]:
    """Return the distributions that a command would load, in order, and an error for each unknown name."""
    only = keywords.get("plugins")
    return select_offers(found, [] if only == "none" else only, keywords.get("without", ()))


def find_distribution(found: Sequence[Distribution], name: str) -> Distribution:
    """Return the distribution with a name in any spelling, or raise a `UsageError` with similar names."""
    for each in found:
        if each.key == normalize_name(name):
            return each
    short = [each.name for each in found if each.key == normalize_name(f"neuroscript-{name}")]
    alike = short or near(name, [each.name for each in found])
    hint = f"; did you mean {' or '.join(map(quote_untrusted, alike))}?" if alike else ""
    raise UsageError(f"unknown plugin {quote_untrusted(name)}{hint}")


def _list(
    found: Sequence[Distribution], taken: Sequence[Distribution], imports: Imports, options: Namespace, output: Output
) -> int:
    keys = {each.key for each in taken}
    if options.json:
        output.json([_data(each, keys, imports) for each in found])
    elif found:
        rows = [
            (cell(each.name, "name"), cell(each.version), cell(_state(each, keys, imports)), cell(_offers(each), "dim"))
            for each in found
        ]
        show([Rows(tuple(rows), wrapped=False)], output)
    else:
        output.say("no plugins are installed; install neuroscript-std to get started")
    return OK


def _state(each: Distribution, keys: set[str], imports: Imports) -> str:
    isolated = isolated_entries(each, imports)
    part = "" if len(isolated) == len(each.entry_points) else "partly "
    return ("enabled" if each.key in keys else "disabled") + (f", {part}isolated" if isolated else "")


def _offers(each: Distribution) -> str:
    return ", ".join(entry.name for entry in each.entry_points)


def _data(each: Distribution, keys: set[str], imports: Imports) -> dict[str, Any]:
    return {
        "name": each.name,
        "version": each.version,
        "enabled": each.key in keys,
        "toolsets": [entry.name for entry in each.entry_points if entry.group == TOOLSETS],
        "plugins": [entry.name for entry in each.entry_points if entry.group == PLUGINS],
        **_isolated_data(each, imports),
    }


def _isolated_data(each: Distribution, imports: Imports) -> dict[str, Any]:
    """Return the isolated entry points of a distribution under ``isolated``, or nothing if there are none."""
    isolated = isolated_entries(each, imports)
    return {"isolated": list(isolated)} if isolated else {}


def _show(
    each: Distribution, taken: Sequence[Distribution], imports: Imports, options: Namespace, output: Output
) -> int:
    keys = {one.key for one in taken}
    isolated = isolated_entries(each, imports)
    if options.json:
        entries = [{"group": one.group, "name": one.name, "target": str(one)} for one in each.entry_points]
        data = {"name": each.name, "version": each.version, "enabled": each.key in keys}
        data |= {"directory": each.folder, "entry_points": entries}
        output.json({**data, **_isolated_data(each, imports)})
        return OK
    rows = [
        (cell(one.group), cell(one.name, "name"), cell(str(one)), *([cell(ISOLATED)] if one.name in isolated else []))
        for one in each.entry_points
    ]
    blocks = [line(str(each), "title"), line(f"{_state(each, keys, imports)}, in {each.folder}", indent=INDENT)]
    show([*blocks, EMPTY, Rows(tuple(rows), indent=INDENT)], output)
    return OK


def _check(found: Sequence[Distribution], imports: Imports, options: Namespace, output: Output) -> int:
    from neuroscript.discovery.probe import TIMEOUT_SECONDS

    reports = [*check_distributions(found, options.timeout or TIMEOUT_SECONDS, imports)]
    broken = sum(not each.is_usable for each in reports)
    if options.json:
        output.json({"ok": not broken, "plugins": [_report_data(each, imports) for each in reports]})
    else:
        show(_blocks(reports, broken, imports), output)
    return FAILED if broken else OK


def _report_data(each: Any, imports: Imports) -> dict[str, Any]:
    return {
        "name": each.distribution.name,
        "version": each.distribution.version,
        "ok": each.is_usable,
        "code": each.code,
        "reason": each.reason,
        "seconds": each.seconds,
        "tools": [*each.tools],
        "hooks": [*each.hooks],
        **_isolated_data(each.distribution, imports),
    }


def _blocks(reports: Sequence[Any], broken: int, imports: Imports) -> Iterator[Rows]:
    if reports:
        rows = (
            (
                cell(str(each.distribution), "name"),
                cell(each.code or "ok", _style(each)),
                cell(each.reason or contents(each, isolated_entries(each.distribution, imports))),
            )
            for each in reports
        )
        yield Rows(tuple(rows))
        yield EMPTY
    plugins = f"{len(reports)} plugin{'s' * (len(reports) != 1)}"
    yield line(f"{plugins}: {len(reports) - broken} usable, {broken} unusable")


def _style(each: Any) -> Any:
    return "good" if not each.code else "mended" if each.is_usable else "bad"
