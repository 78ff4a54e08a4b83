"""Load a function and its METADATA as a tool; loading a file imports it, which executes its code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final
from weakref import finalize

import attrs

from neuroscript.calls.steps import close
from neuroscript.coercion.context import type_name
from neuroscript.discovery.local_plugins import NO_SOURCE, unloadable
from neuroscript.discovery.module_loader import Code, NoSource, read
from neuroscript.errors import MAX_LISTED_PROBLEMS, CallError, HostError, PluginError, SpecError, ToolFailed
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS, bounded_schema, message_of, passed_arguments
from neuroscript.interop.smith.json_values import iter_non_json
from neuroscript.interop.smith.metadata import problems_of
from neuroscript.io.text import one_line, quote_path, quote_untrusted
from neuroscript.names import to_snake_case
from neuroscript.policy.labels import ALL_SINKS, ALL_SOURCES
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.callables import is_coroutine, name_of
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

RESULT: Final = "result"


def function_of(function: Callable[..., Any], args: tuple[ArgSpec, ...]) -> Callable[..., Any]:
    """Return the function that receives the exact values of a call and passes the declared parameters by name.

    An omitted argument without a default in the schema is not passed, so that the function's own default applies.
    """

    def called(rt: Runtime, *values: Any) -> Any:
        try:
            return _check_json(function(**passed_arguments(args, values)))
        except (CallError, HostError):  # these errors already say who can fix them
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error) from error

    async def awaited(rt: Runtime, *values: Any) -> Any:
        try:
            return _check_json(await function(**passed_arguments(args, values)))
        except (CallError, HostError):
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error) from error

    return awaited if is_coroutine(function) else called


def _check_json(result: Any) -> Any:
    """Return the result if JSON can represent it; otherwise raise an error, because the tool is at fault."""
    strange = [*islice(iter_non_json(result, RESULT), MAX_LISTED_PROBLEMS)]
    if strange:
        close(result)
        places = "; ".join(f"{where}: expected a JSON value, got {what}" for where, what in strange)
        raise ToolFailed(places, code="return.type")
    return result


def _failed(error: BaseException) -> ToolFailed:
    """Return the error for an exception of a tool, with its type and message, which are meant for the caller.

    The message is not truncated here, because secrets are redacted later, and a part of one would not be recognized.
    """
    text = one_line(message_of(error))
    return ToolFailed(f"{type_name(error)}: {text}" if text else type_name(error), retry="model")


GROUP: Final = "smith"
"""The default group of a tool."""


HARMLESS: Final = ToolPolicy(effects=("net", "reads"))
"""The policy of a tool that is not dangerous: Smith allows it to read and to use the network without approval."""


DANGEROUS: Final = ToolPolicy(
    effects=("net", "reads", "writes", "deletes"), requires_approval=True, sources=ALL_SOURCES, sinks=ALL_SINKS
)
"""The policy of a dangerous tool: each call is approved, or the host lists the tool in ``preapproved``.

Smith does not say what is dangerous about it, so its arguments may go anywhere.
"""


@attrs.frozen(eq=False)
class SmithTool:
    """A tool with its METADATA.

    Attributes:
        metadata: A copy of the METADATA.
        tool: The tool.
        path: The file that contains both, or None.
    """

    metadata: Mapping[str, Any] = attrs.field(repr=False)
    tool: ToolImplementation
    path: Path | None = None

    @property
    def name(self) -> str:
        """The name of the tool in Smith."""
        return str(self.metadata["name"])


def from_smith(
    metadata: Mapping[str, Any],
    function: Callable[..., Any],
    *,
    group: str = GROUP,
    policy: ToolPolicy | None = None,
) -> ToolImplementation:
    """Return the tool for a function and its METADATA.

    The function receives the declared parameters by name; only its name is checked, and whether it is a coroutine
    function. A dangerous tool requires approval, even if *policy* does not.

    Args:
        group: The group of the tool.
        policy: The policy of the tool. By default, it needs no capability and has the effects ``net`` and ``reads``; a
            dangerous tool also has ``writes`` and ``deletes``.

    Raises:
        SpecError: The METADATA are invalid, or they name another function; with every problem found.
    """
    subject = f"METADATA of {quote_untrusted(name_of(function))}"
    return tool_from_metadata(metadata, {name_of(function): function}, subject, Toolset(group).name, policy).tool


def load_file(
    path: str | os.PathLike[str], *, group: str = GROUP, policy: ToolPolicy | None = None
) -> ToolImplementation:
    """Return the tool in a file with ``METADATA`` and a function; the file is imported: **its code is executed**.

    It is imported under a unique module name, from its current content, and no cache file is written.

    Args:
        group: As for `from_smith`.
        policy: As for `from_smith`.

    Raises:
        PluginError: It cannot be imported.
        SpecError: Its METADATA are invalid; with every problem found.
    """
    return read_file(Path(path), Toolset(group).name, policy).tool


def read_file(path: Path, group: str, policy: ToolPolicy | None) -> SmithTool:
    """Return the tool in a file with its METADATA; raises the errors of `load_file`."""
    name = quote_path(str(path))
    code = _imported(path, name)
    try:
        defined = vars(code.modules[code.name])
        if "METADATA" not in defined:
            raise SpecError(name, ["METADATA: expected a dict, got nothing"])
        found = tool_from_metadata(defined["METADATA"], defined, name, group, policy)
    except BaseException as error:
        code.retire()
        if isinstance(error, (SpecError, KeyboardInterrupt)):
            raise
        raise _unloadable(name, error) from error
    finalize(found.tool.func, code.retire)
    return attrs.evolve(found, path=path)


def _imported(path: Path, name: str) -> Code:
    try:
        code = read(path)
        code.run()
    except KeyboardInterrupt:
        raise
    except NoSource:
        raise PluginError(name, NO_SOURCE) from None
    except BaseException as error:
        raise _unloadable(name, error) from error
    return code


def _unloadable(name: str, error: BaseException) -> PluginError:
    kind = "plugin.import" if isinstance(error, Exception) else "plugin.exit"
    return PluginError(name, unloadable(error), code=kind)


def tool_from_metadata(
    metadata: Any, names: Mapping[str, Any], subject: str, group: str, policy: ToolPolicy | None
) -> SmithTool:
    """Return the tool for METADATA whose function is in *names*, or raise a `SpecError`."""
    problems = problems_of(metadata, names=names)
    if problems:
        raise SpecError(subject, problems)
    copied: dict[str, Any] = json.loads(json.dumps(metadata))
    spec = spec_from_schema(
        to_snake_case(copied["name"]),
        bounded_schema(copied["parameters"], subject),
        group=group,
        description=one_line(copied.get("description", ""), MAX_DESCRIPTION_CHARS),
    )
    function = function_of(names[copied["function"]], spec.args)
    return SmithTool(copied, ToolImplementation(spec, function, policy_of(copied, policy)))


def policy_of(metadata: Mapping[str, Any], policy: ToolPolicy | None) -> ToolPolicy:
    """Return the policy of a tool, from its METADATA and the host's policy."""
    is_dangerous = metadata.get("dangerous", False)
    if policy is None:
        return DANGEROUS if is_dangerous else HARMLESS
    return attrs.evolve(policy, requires_approval=policy.requires_approval or is_dangerous)
