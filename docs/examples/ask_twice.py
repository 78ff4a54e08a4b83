"""A single-file plugin with a tool that prompts the user twice."""

from neuroscript import Registrar, Runtime


def ask_twice(rt: Runtime) -> str:
    """Ask for a name and for an age."""
    return f"{rt.prompt_user('Name?')} is {int(rt.prompt_user('Age?'))}"


def register(registrar: Registrar) -> None:
    registrar.toolset("demo").tool(ask_twice)
