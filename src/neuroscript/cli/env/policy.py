"""The execution policy of a command, from its options and a policy file.

On the command line the user is the host. Grants, denials, trust, preapprovals and isolated tools of the two sources add
up. A tool must be allowed by both, so ``--allow`` always means "only these".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.cli.env.choices import file_of, with_isolated_plugins
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.engine.engine import Engine
from neuroscript.policy.execution_policy import ExecutionPolicy

if TYPE_CHECKING:
    from neuroscript.policy.isolation import Isolation

FLAGS: Final = {"grants": "grant"} | {each: each for each in ("allow", "deny", "preapproved", "isolate")}
"""The fields of a policy that options set, and the names of these options without dashes."""


def policy_of(settings: Mapping[str, Any], approver: Callable[..., Any] | None = None) -> ExecutionPolicy:
    """Return the execution policy of a command.

    Args:
        settings: The options of a command by name.
        approver: The approver of calls that require approval, or None.

    Raises:
        SpecError: A pattern, a grant or the file is invalid.
        UsageError: There is a profile, and no file.
    """
    words: dict[str, Any] = {field: tuple(settings[flag]) for field, flag in FLAGS.items() if settings[flag]}
    file = file_of(settings)
    if file is None:
        if settings["profile"] is not None:
            raise UsageError("--profile needs a policy file; add --policy FILE")
        options = ExecutionPolicy(**words, trusted=settings["trusted"], approver=approver)
        return attrs.evolve(options, isolate=with_isolated_plugins(options.isolate, settings))
    from neuroscript.config.policy_file import load_policy

    base = load_policy(file, profile=settings["profile"])
    options = ExecutionPolicy(**words)  # report errors in the options before those of the merged policy
    together = attrs.evolve(
        base,
        deny=(*base.deny, *words.get("deny", ())),
        grants=(*base.grants, *words.get("grants", ())),
        trusted=base.trusted or settings["trusted"],
        preapproved=(*base.preapproved, *words.get("preapproved", ())),
        approver=approver,
        isolate=with_isolated_plugins(_isolated_by(base, options), settings),
    )
    return together.narrowed(allow=words["allow"], otherwise="refuse") if "allow" in words else together


def _isolated_by(file: ExecutionPolicy, options: ExecutionPolicy) -> Isolation | None:
    """Return the isolation of a policy file, with the tools that the options isolate."""
    if file.isolate is None or options.isolate is None:
        return file.isolate or options.isolate
    return attrs.evolve(file.isolate, tools=(*file.isolate.tools, *options.isolate.tools))


def idle_options(settings: Mapping[str, Any], engine: Engine) -> Iterator[str]:
    """Yield the options, with their values, that match none of the available tools."""
    if settings["isolate_plugins"]:
        from neuroscript.engine.explanation.tool_sources import idle_patterns

        yield from (f"--isolate-plugins {pattern}" for pattern in idle_patterns(settings["isolate_plugins"], engine))
    words = {field: settings[flag] for field, flag in FLAGS.items() if settings[flag]}
    if not words:
        return
    policy = ExecutionPolicy(**{"allow": (), **words})
    unmatched = policy.unmatched(engine.tools, engine.aliases)
    isolated = () if policy.isolate is None else policy.isolate.tools
    for field in ("allow", "deny", "preapproved", "isolate"):
        patterns = isolated if field == "isolate" else getattr(policy, field)
        yield from (f"--{field} {pattern}" for pattern in patterns if pattern in unmatched)
    needs = (need for tool in engine.tools.values() for need in tool.policy.capabilities)
    yield from (f"--grant {grant}" for grant in policy.unused(needs))
