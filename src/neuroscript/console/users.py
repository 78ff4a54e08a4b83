"""Users of the console, and what their roles permit."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from neuroscript.coercion.parameters import STRING, one_of, require_fields

Role = Literal["viewer", "operator", "approver"]

ROLES: Final = get_args(Role)
"""The roles; each may do what the ones before it may."""


@attrs.frozen
class User:
    """A user of the console.

    Attributes:
        name: The name that others see, for example on a call that this user has approved.
        role: A ``viewer`` reads, an ``operator`` also runs tools and plans, and an ``approver`` also answers calls that
            wait for approval and accepts changed definitions.
        token: The token to sign in with; ``""`` if the user signs in with a one-time link.
    """

    name: str
    role: Role = "viewer"
    token: str = attrs.field(default="", repr=False)

    def __attrs_post_init__(self) -> None:
        require_fields("user", self, name=STRING, role=one_of(*ROLES), token=STRING)

    def may(self, role: Role) -> bool:
        """Return whether the role of this user includes another one.

        >>> User("ada", "operator").may("viewer"), User("ada", "operator").may("approver")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL_USER: Final = User("local", "approver")
"""The user who has started the console on this machine, and opens its link."""
