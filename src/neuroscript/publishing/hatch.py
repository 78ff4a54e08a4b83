"""A hatchling build hook that adds the index of a project's tools to its wheel, so that engines need not build it.

```toml
[build-system]
requires = ["hatchling>=1.27", "neuroscript"]
build-backend = "hatchling.build"

[tool.hatch.build.hooks.neuroscript]
```
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from neuroscript.discovery.installed import GROUPS, Distribution, entry_point, normalize_name
from neuroscript.discovery.package_index import FILE, index_to_data, is_computed
from neuroscript.discovery.probe import TIMEOUT_SECONDS, probe_all
from neuroscript.io.user_cache import write_json


class IndexHook(BuildHookInterface[Any]):
    """Adds ``neuroscript.json`` to the metadata of a wheel. Editable wheels get none, because their sources change."""

    PLUGIN_NAME = "neuroscript"

    def dependencies(self) -> list[str]:
        """Return the runtime dependencies of the project, which is imported to build its index."""
        return list(self.metadata.core.dependencies)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Import the project in a separate process, and add its index to the wheel unless its toolsets are computed.

        Raises:
            PluginError: If an engine could not use the wheel.
        """
        if self.target_name != "wheel" or version == "editable":
            return
        distribution = self._distribution()
        if is_computed(distribution):
            return
        (report,) = probe_all([distribution], TIMEOUT_SECONDS, [*self._folders(), *sys.path])
        if not report.is_usable:
            raise report.error()
        self._folder = TemporaryDirectory(prefix="neuroscript-")
        file = str(Path(self._folder.name, FILE))
        write_json(file, index_to_data(distribution, report.entries))
        build_data["extra_metadata"][file] = FILE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary file that contained the index."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _distribution(self) -> Distribution:
        core = self.metadata.core
        groups = core.entry_points
        points = (entry_point(group, *each) for group in GROUPS for each in sorted(groups.get(group, {}).items()))
        return Distribution(normalize_name(core.name), core.raw_name, self.metadata.version, "", tuple(points))

    def _folders(self) -> list[str]:
        """Return the directories that may contain the packages of the project."""
        sources = (os.path.join(self.root, each) for each in (*self.build_config.sources, "src", ""))  # noqa: PTH118
        return [each for each in dict.fromkeys(sources) if Path(each).is_dir()]


@hookimpl
def hatch_register_build_hook() -> type[IndexHook]:
    """Register the build hook with hatchling."""
    return IndexHook
