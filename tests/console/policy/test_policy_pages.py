"""The pages of the policy: its rules in words, explained calls, rules without effect, limits and comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from tests.console.page_client import PageClient, text_of

from neuroscript import Arg, Engine, ExecutionPolicy, Limits, ToolPolicy, Toolset
from neuroscript.console import User, app

FILE = """\
[policy]
grants = ["fs:read:data/**"]
deny = ["*.delete", "nothing.*"]

[policy.profiles.strict]
grants = []

[policy.profiles.open]
trusted = true
"""


def box() -> Toolset:
    tools = Toolset("box")

    @tools.tool(policy=ToolPolicy(capabilities=("fs:read:{path}",), effects=("reads",)))
    def read(path: str) -> str:
        """Read a file."""
        return path

    @tools.tool(policy=ToolPolicy(effects=("deletes",)))
    def delete(path: str) -> bool:
        """Delete a file."""
        return True

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def hash(key: Annotated[str, Arg("The key.", secret=True)]) -> int:
        """Return a number."""
        return len(key)

    @tools.tool(policy=ToolPolicy(requires_trust=True))
    def trusted() -> bool:
        """Return True."""
        return True

    return tools


def always() -> bool:
    """Return True."""
    return True


def client_of(policy: ExecutionPolicy | None = None, user: User | None = None, **options: Any) -> PageClient:
    return PageClient.of(app(Engine(plugins="none", toolsets=box(), policy=policy), **options), user=user)


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    file = tmp_path / "neuroscript.toml"
    file.write_text(FILE)
    return file


# Rules


def test_page_shows_the_effective_policy_in_words() -> None:
    """Each group has its sentences with the rule and the number of tools."""
    page = text_of(client_of(ExecutionPolicy(grants=("fs:read:data/**",), deny=("*.delete",))).get("/policy"))

    assert "Tools may read files matching data/**. grants: fs:read:data/**" in page
    assert (
        "Each tool that matches *.delete may not run, even if another pattern allows it. deny: *.delete 1 tool" in page
    )
    assert "No limit counts the calls of this browser." in page


def test_page_shows_the_use_of_limits() -> None:
    """The calls of all browsers count for a limit of the engine."""
    client = client_of(ExecutionPolicy(limits=Limits(calls=4, rates={"box.*": "9/hour"})))
    client.app.console.engine.call("box.hash", ["abcdef"])
    next(iter(client.app.console.visitors)).session.call("box.hash", ["abcdef"])

    for page in (client.get("/policy"), client.get("/policy/limits")):
        assert "calls 2 4 50 % 50 % all sessions" in text_of(page)
        assert "9/hour for box.* 2 9 22 % 22 % all sessions" in text_of(page)


def test_policies_of_layers_are_numbered() -> None:
    """A rule of an enclosing policy says so."""
    outer = ExecutionPolicy(deny=("box.delete",))
    page = text_of(client_of(outer.narrowed(deny=())).get("/policy"))

    assert "box.delete may not run, even if another pattern allows it. deny: box.delete 1 tool policy 2" in page


# Explained calls


@pytest.mark.parametrize("path", ["/policy/call", "/policy/call/live"])
def test_explanation_shows_each_check_and_what_to_grant(path: str) -> None:
    """As an option of the command line, in a policy file and in Python."""
    response = client_of().post(path, tool="box.read", arguments='{"path": "data/a"}')
    page = text_of(response.text)

    assert response.status_code == 200
    assert "Refused box.read: would be refused: needs fs:read:data/a" in page
    assert "--grant 'fs:read:data/a'" in page
    assert '[policy] grants = ["fs:read:data/a"]' in page
    assert "ExecutionPolicy(grants=('fs:read:data/a',))" in page
    assert "needs refuses grants fs:read:data/a (from fs:read:{path}), which no grant covers" in page
    assert (path == "/policy/call") == ("<title>" in response.text)


def test_explanation_without_arguments_is_about_the_tool() -> None:
    """A link from another page opens it by GET."""
    page = text_of(client_of(ExecutionPolicy(grants=("fs:read:**",))).get("/policy/call", tool="tool.Box.Read"))

    assert "Depends on the arguments box.read: may run, depending on its arguments" in page
    assert "arguments depends depends on the arguments" in page


def test_explanation_of_an_unknown_tool_lists_similar_names() -> None:
    response = client_of().post("/policy/call/live", tool="box.raed", arguments="{}")

    assert text_of(response.text) == "There is no tool box.raed. Similar names: box.read."


def test_explanation_names_the_problems_of_arguments() -> None:
    response = client_of().post("/policy/call/live", tool="box.hash", arguments="[1, 2")

    assert "arguments refuses arguments" in text_of(response.text)


def test_tool_with_effects_is_held_back_by_the_console() -> None:
    """The policy would permit it, but the console runs only tools without effects unless a setting says otherwise."""
    held = client_of().post("/policy/call/live", tool="box.delete", arguments='["a"]').text
    permitted = client_of(run_effects=True).post("/policy/call/live", tool="box.delete", arguments='["a"]').text

    assert "This tool has effects, or does not declare them" in held
    assert "This tool has effects, or does not declare them" not in permitted


@pytest.mark.parametrize("path", ["/policy/call", "/policy/call/live"])
@pytest.mark.parametrize(
    "arguments", ['{"key": "hunter2-hunter2"}', '{"kye": "hunter2-hunter2"}', '["hunter2-hunter2", 5']
)
def test_secret_arguments_are_not_sent_back(path: str, arguments: str) -> None:
    """Not in the form, not in a problem and not for a call that is refused."""
    response = client_of().post(path, tool="box.hash", arguments=arguments)

    assert response.status_code == 200
    assert "hunter2" not in response.text


def test_viewer_may_ask_but_a_form_of_another_site_may_not() -> None:
    """Nothing runs, but each form is checked in the same way."""
    client = client_of(user=User("eve", "viewer"))

    assert client.post("/policy/call/live", tool="box.hash", arguments="").status_code == 200
    assert client.client.post("/policy/call/live", data={"tool": "box.hash"}).status_code == 403


# Findings


def test_findings_list_rules_without_effect_and_unusable_tools() -> None:
    page = text_of(client_of(ExecutionPolicy(deny=("nothing.*",), allow=("box.*",))).get("/policy/findings"))

    assert "4 tools: 2 can run, 2 cannot." in page
    assert "deny nothing.* matches no tool" in page
    assert "box.trusted trust requires a trusted host" in page


def test_findings_are_paged() -> None:
    tools = Toolset("many")
    for number in range(205):
        tools.tool(name=f"t{number:03}", policy=ToolPolicy(requires_trust=True))(always)
    client = PageClient.of(app(Engine(plugins="none", toolsets=tools)))

    first, last = client.get("/policy/findings"), client.get("/policy/findings", page="3")
    assert ("many.t000" in first, "many.t204" in first) == (True, False)
    assert ("many.t000" in last, "many.t204" in last) == (False, True)
    assert "Page 3 of 3" in last
    assert client.get("/policy/findings", page="99999999999")


# Comparisons


def test_profiles_of_the_policy_file_are_compared(policy_file: Path) -> None:
    """The page lists the tools that differ, with both reasons, and the rules that differ."""
    client = client_of(policy_file=policy_file)
    page = client.get("/policy/compare", a="profile:strict", b="profile:open")
    text = text_of(page)

    assert "The policies decide differently about 2 tools." in text
    assert "box.read never runs needs fs:read:{path}, which no grant can cover grants depends on the arguments" in text
    assert "box.trusted never runs requires a trusted host trust runs" in text
    assert '<option value="profile:strict" selected>neuroscript.toml, profile strict</option>' in page
    assert "Tools may read files matching data/**." in text


def test_text_of_a_policy_is_compared_with_the_effective_one() -> None:
    client = client_of()
    response = client.post("/policy/compare", a="current", b="text", b_text="policy.deny = ['box.*']")

    assert response.status_code == 200
    assert "The policies decide differently about 2 tools." in text_of(response.text)
    assert "policy.deny = [&#39;box.*&#39;]" in response.text


def test_invalid_policy_is_reported_with_its_lines(policy_file: Path) -> None:
    client = client_of(policy_file=policy_file)
    response = client.post("/policy/compare", a="text", b="profile:none", a_text="[policy]\ndenny = []\ngrants = 5")
    text = text_of(response.text)

    assert response.status_code == 422
    assert "Line 2: policy.denny: unknown key" in text
    assert "Line 3: policy.grants: must be an array of strings, in brackets" in text
    assert "policy.profiles.none: unknown profile" in text


def test_unknown_policy_is_rejected() -> None:
    """A file that the console was not started with cannot be read through it."""
    client = client_of()

    for source in ("file", "profile:x", "flow:none", "/etc/passwd"):
        response = client.client.get("/policy/compare", params={"a": source, "b": "current"})
        assert response.status_code == 422
        assert "is not a policy of this console" in response.text


def test_approver_is_no_difference_between_policies() -> None:
    """The text of a policy cannot contain one, so the one of the engine is used."""
    tools = Toolset("box")
    tools.tool(name="ask", policy=ToolPolicy(requires_approval=True))(always)
    policy = ExecutionPolicy(approver=lambda request: None)
    client = PageClient.of(app(Engine(plugins="none", toolsets=tools, policy=policy)))

    assert "They decide the same about each tool" in text_of(client.get("/policy/compare", a="current", b="default"))
