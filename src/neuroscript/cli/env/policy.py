"""The execution policy of a command, from its options and a policy file.

On the command line the user is the host. Grants, denials, trust and preapprovals of the two sources add up. A tool must
be allowed by both, so ``--allow`` always means "only these".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.cli.env.choices import file_of
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.engine.engine import Engine
from neuroscript.policy.execution_policy import ExecutionPolicy

FLAGS: Final = {"allow": "allow", "deny": "deny", "grants": "grant", "preapproved": "preapproved"}
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
        return ExecutionPolicy(**words, trusted=settings["trusted"], approver=approver)
    from neuroscript.config.policy_file import load_policy

    base = load_policy(file, profile=settings["profile"])
    ExecutionPolicy(**words)  # report errors in the options before those of the merged policy
    together = attrs.evolve(
        base,
        deny=(*base.deny, *words.get("deny", ())),
        grants=(*base.grants, *words.get("grants", ())),
        trusted=base.trusted or settings["trusted"],
        preapproved=(*base.preapproved, *words.get("preapproved", ())),
        approver=approver,
    )
    return together.narrowed(allow=words["allow"], otherwise="refuse") if "allow" in words else together


def idle_options(settings: Mapping[str, Any], engine: Engine) -> Iterator[str]:
    """Yield the options, with their values, that match none of the available tools."""
    words = {field: settings[flag] for field, flag in FLAGS.items() if settings[flag]}
    if not words:
        return
    policy = ExecutionPolicy(**{"allow": (), **words})
    unmatched = policy.unmatched(engine.tools, engine.aliases)
    for field in ("allow", "deny", "preapproved"):
        yield from (f"--{field} {pattern}" for pattern in getattr(policy, field) if pattern in unmatched)
    needs = (need for tool in engine.tools.values() for need in tool.policy.capabilities)
    yield from (f"--grant {grant}" for grant in policy.unused(needs))
