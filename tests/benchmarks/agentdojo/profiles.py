"""What the host of the benchmark declares and permits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from neuroscript import FlowLabels, FlowRule, load_policy

VALUES: Final = (FlowRule(("untrusted",), ("outside", "public", "money", "people", "code"), by="values"),)
"""Ask before untrusted text leaves the user's own storage; what is read from there is untrusted again."""
SESSION: Final = (FlowRule(("untrusted",), ("*",), by="session"),)
"""Ask before anything is sent or changed after untrusted text was read."""


@attrs.frozen
class Profile:
    """What the host permits.

    Attributes:
        flow: Rules about information flow.
        is_narrowed: Whether tools that the user's task does not need require approval.
    """

    flow: tuple[FlowRule, ...] = ()
    is_narrowed: bool = False


PROFILES: Final[Mapping[str, Profile]] = {
    "none": Profile(),
    "allow-list": Profile(is_narrowed=True),
    "values": Profile(VALUES),
    "session": Profile(SESSION),
    "allow-list+values": Profile(VALUES, is_narrowed=True),
}


def labels_of(suite: str) -> tuple[FlowLabels, ...]:
    """Return what the policy file of a suite declares about its tools."""
    return load_policy(Path(__file__).with_name(f"{suite}.toml")).labels
