"""Named bundles of this project's distributions, and the commands that install missing ones.

The core has an extra with the name and content of each bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from neuroscript._imports import OWN_EXTRAS, install_hint
from neuroscript.coercion.parameters import STRING, require
from neuroscript.errors import PluginError
from neuroscript.io.near_names import near
from neuroscript.io.text import quote_untrusted

EXTRAS: Final[Mapping[str, str]] = MappingProxyType({extra: f"neuroscript-{extra}" for extra in OWN_EXTRAS})
"""The extras of the core that install one distribution each, and those distributions."""

BUNDLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "pure": ("std",),
        "files": ("std", "fs"),
        "coding": ("std", "fs", "git", "shell"),
        "online": ("std", "http"),
        "all": tuple(EXTRAS),
    }
)
"""The extras in each bundle, in the order in which an engine loads them."""

MARK: Final = "@"
"""The prefix of bundle names in lists that also contain names of distributions."""


def bundle(name: str) -> tuple[str, ...]:
    """Return the distributions of a bundle, for the *plugins* parameter of an engine.

    Distributions that are not installed appear in the engine's ``plugin_errors``, each with the command that installs
    it.

    Raises:
        PluginError: The bundle does not exist, ``plugin.bundle``.

    >>> bundle("files")
    ('neuroscript-std', 'neuroscript-fs')
    """
    require("bundle", name=(name, STRING))
    if name not in BUNDLES:
        alike = near(name, BUNDLES)
        hint = f"did you mean {' or '.join(alike)}?" if alike else f"available bundles: {', '.join(BUNDLES)}"
        raise PluginError(quote_untrusted(name), f"unknown bundle; {hint}", code="plugin.bundle")
    return tuple(EXTRAS[extra] for extra in BUNDLES[name])


def expand_bundles(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of distributions with each bundle, such as ``@coding``, replaced by its members.

    Raises:
        PluginError: A bundle does not exist.

    >>> expand_bundles(("acme-tools", "@pure"))
    ('acme-tools', 'neuroscript-std')
    """
    found = (bundle(name[1:]) if name.startswith(MARK) else (name,) for name in names)
    return tuple(dict.fromkeys(each for names in found for each in names))


def not_installed_reason(key: str) -> str:
    """Return the reason for a distribution that is not installed, and how to install it if it belongs to this project.

    Args:
        key: The name, normalized as in PEP 503.

    >>> not_installed_reason("acme-tools")
    'is not installed, or offers no toolset'
    """
    extra = next((extra for extra, name in EXTRAS.items() if name == key), None)
    if extra is None:
        return "is not installed, or offers no toolset"
    return f"is not installed; install it with: {install_hint(extra)}"
