"""A single-file plugin with a tool whose calls need approval."""

from neuroscript import Registrar, Runtime, ToolPolicy


def close(rt: Runtime, branch: str) -> str:
    """Close a branch of the shop permanently."""
    return f"{branch} is closed"


def register(registrar: Registrar) -> None:
    registrar.toolset("shop").tool(policy=ToolPolicy(requires_approval=True))(close)
