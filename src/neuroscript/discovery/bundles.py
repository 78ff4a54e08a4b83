"""Named bundles of our own distributions, and the line that installs what is missing of one.

An extra of the core has the name of each bundle and brings the same: ``pip install "neuroscript[coding]"``.

Source: contract section 7, level B.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from neuroscript._imports import mending
from neuroscript.coercion.parameters import STRING, require
from neuroscript.errors import PluginError
from neuroscript.io.near_names import near
from neuroscript.io.text import shown

EXTRAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "std": "neuroscript-std",
        "fs": "neuroscript-fs",
        "git": "neuroscript-git",
        "http": "neuroscript-http",
        "shell": "neuroscript-shell",
    }
)
"""The extras of the core that bring one distribution each, and the distributions."""

BUNDLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "pure": ("std",),
        "files": ("std", "fs"),
        "coding": ("std", "fs", "git", "shell"),
        "web": ("std", "http"),
        "all": tuple(EXTRAS),
    }
)
"""The bundles, each as the extras that it consists of, in the order in which an engine takes them."""

MARK: Final = "@"
"""How the name of a bundle begins where names of distributions stand too."""


def bundle(name: str) -> tuple[str, ...]:
    """Return the distributions of a bundle, as the *plugins* of an engine.

    Those that are not installed stand in the engine's ``plugin_errors``, each with the line that installs it.

    Raises:
        PluginError: There is no such bundle, ``plugin.bundle``.

    >>> bundle("files")
    ('neuroscript-std', 'neuroscript-fs')

    Source: contract section 7, level B.
    """
    require("bundle", name=(name, STRING))
    if name not in BUNDLES:
        alike = near(name, BUNDLES)
        hint = f"did you mean {' or '.join(alike)}?" if alike else f"there are {', '.join(BUNDLES)}"
        raise PluginError(shown(name), f"no bundle is called so; {hint}", code="plugin.bundle")
    return tuple(EXTRAS[extra] for extra in BUNDLES[name])


def unbundled(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of distributions with the members of each bundle, as ``@coding``, in its place.

    Raises:
        PluginError: There is no such bundle.

    >>> unbundled(("acme-tools", "@pure"))
    ('acme-tools', 'neuroscript-std')
    """
    found = (bundle(name[1:]) if name.startswith(MARK) else (name,) for name in names)
    return tuple(dict.fromkeys(each for names in found for each in names))


def lacking(key: str) -> str:
    """Return what is said of a distribution that is not installed, and, if it is ours, what mends that.

    Args:
        key: Its name as PEP 503 compares it.

    >>> lacking("neuroscript-git")
    'is not installed; pip install "neuroscript[git]" brings it'
    """
    extra = next((extra for extra, name in EXTRAS.items() if name == key), None)
    if extra is None:
        return "is not installed, or offers no toolset"
    return f"is not installed; {mending(extra)} brings it"
