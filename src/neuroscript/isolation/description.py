"""What a confined process reports about the toolset that it imports: the index of its tools, or an error."""

from __future__ import annotations

import json
from typing import Any

from neuroscript.discovery.index_builder import index, index_tool, load
from neuroscript.discovery.installed import TOOLSETS, from_plain
from neuroscript.discovery.local_plugins import registered, unloadable
from neuroscript.discovery.package_index import IndexedEntry, entry_to_data, index_to_data
from neuroscript.errors import PluginError
from neuroscript.io.tracebacks import error_summary
from neuroscript.isolation.tool_source import code_of


def describe(kind: str, data: Any) -> tuple[str, str, str]:
    """Import a toolset, and return the code and the reason of an error, both ``""`` without one, and its index as JSON.

    Args:
        kind: ``"entry"`` for all entry points of a distribution, ``"files"`` for a plugin file or package.
        data: The fields of the distribution, or the data of the source of the plugin.
    """
    try:
        found = _distribution(data) if kind == "entry" else _plugin(data)
        return "", "", json.dumps(found)
    except PluginError as error:
        return error.code, error.reason, ""
    except BaseException as error:
        return "plugin.exit", f"cannot be loaded: {error_summary(error)}", ""


def _distribution(data: Any) -> dict[str, Any]:
    distribution = from_plain(data)
    return index_to_data(distribution, tuple(map(index, load(distribution))))


def _plugin(data: Any) -> dict[str, Any]:
    code = code_of(data)
    try:
        registrar = registered(code.run(), "")
        tools = tuple(map(index_tool, registrar.tools))
        return entry_to_data(IndexedEntry(TOOLSETS, "", "", [], "", {}, [], registrar.aliases, tools))
    except PluginError:
        raise
    except Exception as error:
        raise PluginError("", unloadable(error)) from error
