"""The policies that a page can compare: the current one, those of a file, built-in ones, and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from neuroscript.config.policy_file import load_policy, policy_of_toml, profile_names
from neuroscript.console.console import Console
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.flow_rules import FLOW_PROFILES

PROFILE: Final = "profile:"
FLOW: Final = "flow:"


@attrs.frozen
class PolicyChoice:
    """A policy that a user has chosen.

    Attributes:
        source: ``current``, ``default``, ``file``, ``profile:NAME``, ``flow:NAME`` or ``text``.
        text: The policy as TOML, for ``text``.
    """

    source: str
    text: str = ""


def choices(console: Console) -> list[tuple[str, str]]:
    """Return the value and the title of each policy that can be chosen."""
    return [*_choices(console)]


def _choices(console: Console) -> Iterator[tuple[str, str]]:
    yield "current", "The effective policy"
    yield "default", "No policy: nothing is granted"
    file = console.settings.policy_file
    if file is not None:
        yield "file", f"{file.name}, without a profile"
        try:
            names = profile_names(file)
        except SpecError:
            names = ()
        yield from ((f"{PROFILE}{name}", f"{file.name}, profile {name}") for name in names)
    yield from ((f"{FLOW}{name}", f"The effective policy with flow rules {name}") for name in FLOW_PROFILES)
    yield "text", "The text of a policy file"


def read_policy(console: Console, choice: PolicyChoice) -> ExecutionPolicy:
    """Return the policy of a choice, with the approver of the engine, so that approvers are no difference.

    Raises:
        SpecError: The file or the text is invalid, or the choice is unknown.
    """
    current, file = console.engine.policy, console.settings.policy_file
    source = choice.source
    if source == "current":
        return current
    approver = next((layer.approver for layer in current.layers if layer.approver is not None), None)
    if source == "text":
        found = policy_of_toml(choice.text, source="the text")
    elif source == "default":
        found = ExecutionPolicy()
    elif source.startswith(FLOW) and source.removeprefix(FLOW) in FLOW_PROFILES:
        return attrs.evolve(current, flow=FLOW_PROFILES[source.removeprefix(FLOW)])
    elif file is not None and source == "file":
        found = load_policy(file)
    elif file is not None and source.startswith(PROFILE):
        found = load_policy(file, profile=source.removeprefix(PROFILE))
    else:
        raise SpecError("comparison", [f"{quote_untrusted(source)} is not a policy of this console"])
    return attrs.evolve(found, approver=approver)
