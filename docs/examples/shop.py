"""A plugin of one file: a tool whose calls somebody has to approve."""

from neuroscript import Registrar, Runtime, ToolPolicy


def close(rt: Runtime, branch: str) -> str:
    """Close a branch of the shop for good."""
    return f"{branch} is closed"


def register(registrar: Registrar) -> None:
    registrar.toolset("shop").tool(policy=ToolPolicy(requires_approval=True))(close)
