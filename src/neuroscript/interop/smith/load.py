"""One call of a function as its METADATA has it: exact values by name out, JSON or a clear error in.

Source: Smith's document, sections 1, 5 and 9; seed-systems.md rows SM-3, SM-21, SM-33; contract section 6.

A function and its METADATA as a tool of ours; a file that has both is imported, which runs it.

Source: Smith's document, sections 1, 2, 5 and 6; seed-systems.md rows SM-1 to SM-7, SM-15, SM-16, SM-22, SM-23.
"""

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
from neuroscript.errors import LISTED, CallError, LentError, PluginError, SpecError, ToolFailed
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import LONGEST, bounded_schema, given, message_of
from neuroscript.interop.smith.json_values import unspeakable
from neuroscript.interop.smith.metadata import problems_of
from neuroscript.io.text import one_line, shown, shown_path
from neuroscript.names import word_of
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.callables import is_coroutine, name_of
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

RESULT: Final = "result"


def function_of(function: Callable[..., Any], args: tuple[ArgSpec, ...]) -> Callable[..., Any]:
    """Return what is called with the exact values of a call; it gives *function* the declared parameters by name.

    What was not given and has no default in the schema is not passed, so that the function's own default counts.
    """

    def called(rt: Runtime, *values: Any) -> Any:
        try:
            return _told(function(**given(args, values)))
        except (CallError, LentError):  # they say themselves who must act
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error) from error

    async def awaited(rt: Runtime, *values: Any) -> Any:
        try:
            return _told(await function(**given(args, values)))
        except (CallError, LentError):
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error) from error

    return awaited if is_coroutine(function) else called


def _told(result: Any) -> Any:
    """Return a result that JSON can hold; anything else is the fault of the tool."""
    strange = [*islice(unspeakable(result, RESULT), LISTED)]
    if strange:
        close(result)
        places = "; ".join(f"{where}: expected what JSON can hold, got {what}" for where, what in strange)
        raise ToolFailed(places, code="return.type")
    return result


def _failed(error: BaseException) -> ToolFailed:
    """Return the error of a tool as its author raised it: the type and the text, which are meant to be read.

    The text is not cut, for secrets are hidden in it later: nothing would find what is left of one.
    """
    text = one_line(message_of(error))
    return ToolFailed(f"{type_name(error)}: {text}" if text else type_name(error), retry="model")


GROUP: Final = "smith"
"""The group of a tool of which nobody says another one."""


HARMLESS: Final = ToolPolicy(effects=("net", "reads"))
"""What a tool needs that is not dangerous: the document lets it ask and read, and it runs as any other."""


DANGEROUS: Final = ToolPolicy(effects=("net", "reads", "writes", "deletes"), requires_approval=True)
"""What one needs that is: somebody approves each call, or the host has named it in ``preapproved``."""


@attrs.frozen(eq=False)
class Described:
    """A tool with the METADATA that it was made of.

    Attributes:
        metadata: A copy.
        tool: It.
        path: The file that has both, or None.
    """

    metadata: Mapping[str, Any] = attrs.field(repr=False)
    tool: ToolImplementation
    path: Path | None = None

    @property
    def name(self) -> str:
        """What it is called in Smith."""
        return str(self.metadata["name"])


def from_smith(
    metadata: Mapping[str, Any],
    function: Callable[..., Any],
    *,
    group: str = GROUP,
    policy: ToolPolicy | None = None,
) -> ToolImplementation:
    """Return the tool that a function and its METADATA are.

    The function gets the declared parameters by name; of it nothing is looked at but its name, and whether it is to be
    awaited. A dangerous one requires an approval, whatever *policy* says.

    Args:
        group: The group of the tool.
        policy: What it needs, in place of nothing and the effects ``net`` and ``reads``; those of a dangerous one are
            ``writes`` and ``deletes`` too.

    Raises:
        SpecError: With everything that is wrong with the METADATA, or the function has another name there.
    """
    subject = f"METADATA of {shown(name_of(function))}"
    return described(metadata, {name_of(function): function}, subject, Toolset(group).name, policy).tool


def load_file(
    path: str | os.PathLike[str], *, group: str = GROUP, policy: ToolPolicy | None = None
) -> ToolImplementation:
    """Return the tool of a file with ``METADATA`` and a function, which is imported: **its code runs**.

    It is imported under a name of its own, as it is now, and nothing is written beside it.

    Args:
        group: As for `from_smith`, and so is *policy*.

    Raises:
        PluginError: It can not be imported.
        SpecError: With everything that is wrong with its METADATA.
    """
    return read_file(Path(path), Toolset(group).name, policy).tool


def read_file(path: Path, group: str, policy: ToolPolicy | None) -> Described:
    """Return the tool of a file with its METADATA, or raise what `load_file` raises."""
    name = shown_path(str(path))
    code = _imported(path, name)
    try:
        defined = vars(code.modules[code.name])
        if "METADATA" not in defined:
            raise SpecError(name, ["METADATA: expected a dict, got nothing"])
        found = described(defined["METADATA"], defined, name, group, policy)
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


def described(
    metadata: Any, names: Mapping[str, Any], subject: str, group: str, policy: ToolPolicy | None
) -> Described:
    """Return the tool that METADATA describe, whose function stands in *names*, or raise a `SpecError`."""
    problems = problems_of(metadata, names=names)
    if problems:
        raise SpecError(subject, problems)
    kept: dict[str, Any] = json.loads(json.dumps(metadata))
    spec = spec_from_schema(
        word_of(kept["name"]),
        bounded_schema(kept["parameters"], subject),
        group=group,
        description=one_line(kept.get("description", ""), LONGEST),
    )
    function = function_of(names[kept["function"]], spec.args)
    return Described(kept, ToolImplementation(spec, function, needs_of(kept, policy)))


def needs_of(metadata: Mapping[str, Any], policy: ToolPolicy | None) -> ToolPolicy:
    """Return what a tool needs, by its METADATA and what a host says of it."""
    is_dangerous = metadata.get("dangerous", False)
    if policy is None:
        return DANGEROUS if is_dangerous else HARMLESS
    return attrs.evolve(policy, requires_approval=policy.requires_approval or is_dangerous)
