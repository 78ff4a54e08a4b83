"""What may run, as the words of the command and a file state it together.

On the command line the user is the host. What is granted, denied, trusted and preapproved adds up; of what is allowed,
only that runs which both allow, so that ``--allow`` always means "only these".

Source: issue "Authority", policy as a file.
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
"""The fields of a policy that words state, and their options without the dashes."""


def stated(settings: Mapping[str, Any], approver: Callable[..., Any] | None = None) -> ExecutionPolicy:
    """Return what may run.

    Args:
        settings: The options of a command by name.
        approver: Who is asked about the calls that have to be approved; None where nobody can be.

    Raises:
        SpecError: A pattern or a grant is none, or the file is wrong.
        UsageError: A profile is named, and there is no file.
    """
    words: dict[str, Any] = {field: tuple(settings[flag]) for field, flag in FLAGS.items() if settings[flag]}
    file = file_of(settings)
    if file is None:
        if settings["profile"] is not None:
            raise UsageError("--profile names a part of a policy file, and there is none; name it with --policy")
        return ExecutionPolicy(**words, trusted=settings["trusted"], approver=approver)
    from neuroscript.config.policy_file import load_policy

    base = load_policy(file, profile=settings["profile"])
    ExecutionPolicy(**words)  # what is wrong with the words is said of them alone
    together = attrs.evolve(
        base,
        deny=(*base.deny, *words.get("deny", ())),
        grants=(*base.grants, *words.get("grants", ())),
        trusted=base.trusted or settings["trusted"],
        preapproved=(*base.preapproved, *words.get("preapproved", ())),
        approver=approver,
    )
    return together.narrowed(allow=words["allow"]) if "allow" in words else together


def without_effect(settings: Mapping[str, Any], engine: Engine) -> Iterator[str]:
    """Yield the words, with their options, that mean nothing for the tools that are there."""
    words = {field: settings[flag] for field, flag in FLAGS.items() if settings[flag]}
    if not words:
        return
    policy = ExecutionPolicy(**{"allow": (), **words})
    unmatched = policy.unmatched(engine.tools, engine.aliases)
    for field in ("allow", "deny", "preapproved"):
        yield from (f"--{field} {pattern}" for pattern in getattr(policy, field) if pattern in unmatched)
    needs = (need for tool in engine.tools.values() for need in tool.policy.capabilities)
    yield from (f"--grant {grant}" for grant in policy.unused(needs))
