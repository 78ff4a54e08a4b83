"""The pages of tools, as a browser without JavaScript requests them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from tests.console.conftest import Client, ServedConsole, serving
from tests.console.tools.workshop import RED_DOT, SCRIPT_PICTURE, SECRET, Workshop, many_tools

from neuroscript import Approval, Engine, ExecutionPolicy, Host, Limits, Runtime, ToolPolicy, Toolset
from neuroscript.console import Inbox, User, app


@pytest.fixture
def client(console: ServedConsole) -> Client:
    """Return a client that is signed in."""
    return console.sign_in()


def text_of(html: str) -> str:
    """Return the text of a page in one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def run_to_end(client: Client, tool: str, form: dict[str, Any] | None = None, **options: Any) -> str:
    """Run a tool, and return the HTML of the page of the finished call."""
    response = client.post(f"/tools/{tool}/run", {"$do": "run", **(form or {})}, **options)
    assert response.status_code == 303, text_of(response.text)
    address = response.headers["location"]
    for _ in range(1_000):
        html = client.get(address).text
        if 'class="running"' not in html:
            return html
        sleep(0.01)
    raise AssertionError("the call does not end")


def test_list_shows_each_tool_with_the_decision_of_the_policy(client: Client) -> None:
    """A tool that the policy denies is listed, with the reason."""
    html = client.get("/tools").text

    assert "18 tools: 16 granted, 2 refused" in text_of(html)
    assert "shop.denied Do something that the policy denies. shop host refused" in text_of(html)
    assert "denied by" in text_of(html)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"q": "password"}, ["shop.login"]),
        ({"q": "hop.pri", "status": "granted"}, ["shop.price"]),
        ({"status": "refused"}, ["shop.confidential", "shop.denied"]),
        ({"status": "approval"}, []),
        ({"q": "nothing like this exists"}, []),
    ],
    ids=lambda value: "".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_list_is_searched_and_filtered(client: Client, query: dict[str, str], expected: list[str]) -> None:
    """Search and filters work as a GET form; a page for JavaScript contains the list alone."""
    found = client.get("/tools", params=query)
    part = client.get("/tools", params=query, headers={"x-requested-with": "neuroscript"})

    for response in (found, part):
        assert re.findall(r'href="/tools/([^"?]+)"', response.text) == expected
    assert "<html" in found.text
    assert "<html" not in part.text


def test_first_page_of_thousand_tools_is_small(tmp_path: Path) -> None:
    """The list is paged on the server."""
    with serving(app(Engine(plugins=(), toolsets=[many_tools()]))) as served:
        client = served.sign_in()
        first = client.get("/tools")
        last = client.get("/tools", params={"page": "20"})

        assert len(first.content) <= 60_000
        assert "Page 1 of 20" in text_of(first.text)
        assert "Page 20 of 20" in text_of(last.text)


def test_page_of_a_tool_describes_it(client: Client) -> None:
    """The page has nested arguments, effects, needs and schemas."""
    text = text_of(client.get("/tools/shop.ship").text)

    for part in ("parcel.to.street", "parcel.weight", "one of &#39;letter&#39;", "Effects pure", "Needs nothing"):
        assert unescape(part) in text
    assert '"$defs"' not in text
    assert '"additionalProperties": false' in text


def test_page_of_an_unknown_tool(client: Client) -> None:
    """It says so, with status 404."""
    response = client.get("/tools/shop.missing")

    assert response.status_code == 404
    assert "There is no tool with this name." in text_of(response.text)


def test_name_in_any_spelling_finds_a_tool(client: Client) -> None:
    """The wire name that models use is an address too."""
    assert "<h1>shop.price</h1>" in client.get("/tools/shop__price").text


def test_check_shows_repairs_values_and_decision(client: Client) -> None:
    """The preview says what coercion makes of the arguments, and which rule decides."""
    response = client.post("/tools/shop.price/check", {"arg.item": "pen", "arg.count": "2.0", "arg.discount": "0.5"})

    text = text_of(response.text)
    assert "would run decided by *" in text
    assert "count float → int" in text
    assert 'item str "pen" count int 2 discount float 0.5' in text


def test_check_shows_each_problem_with_a_link_to_its_field(client: Client) -> None:
    """Problems have the place as in errors, also within nested values."""
    form = {"arg.parcel.to.street": "Main", "arg.parcel.weight": "heavy", "arg.express": "true"}
    html = client.post("/tools/shop.ship/check", form).text

    assert re.findall(r'<a href="#([^"]+)">([^<]+)</a>: ([^<]+)', unescape(html)) == [
        ("f-arg.parcel.to.city", "parcel['to']['city']", "expected string, got nothing"),
        (
            "f-arg.parcel.weight",
            "parcel['weight']",
            "expected float, got str (a string must be a decimal number, such as -1.5e3)",
        ),
    ]


def test_check_shows_needs_of_the_arguments(client: Client) -> None:
    """A need contains the path that was entered."""
    assert "Needs fs:read:a.txt" in text_of(client.post("/tools/shop.read/check", {"arg.path": "a.txt"}).text)


def test_check_shows_what_a_refused_call_needs(workshop: Workshop, tmp_path: Path) -> None:
    """The remedy is an option of the command line."""
    with serving(app(workshop.engine(tmp_path, policy=ExecutionPolicy()))) as served:
        text = text_of(served.sign_in().post("/tools/shop.read/check", {"arg.path": "a.txt"}).text)

    assert "refused" in text
    assert "--grant 'fs:read:a.txt'" in text


def test_check_shows_limits_that_are_left(workshop: Workshop, tmp_path: Path) -> None:
    """Each browser counts its own calls."""
    policy = ExecutionPolicy(limits=Limits(calls=2))
    with serving(app(workshop.engine(tmp_path, policy=policy))) as served:
        client = served.sign_in()
        run_to_end(client, "shop.picture")
        text = text_of(client.post("/tools/shop.picture/check").text)

    assert "calls: 1 of 2 used" in text


def test_buttons_change_the_form_without_javascript(client: Client) -> None:
    """Adding and removing items submits the form, and what was entered is still there."""
    form = {"arg.parcel.to.street": "Main", "$do": "add:arg.parcel.tags"}
    one = client.post("/tools/shop.ship", form).text
    two = client.post("/tools/shop.ship", {**form, "arg.parcel.tags.0.$item": "1", "arg.parcel.tags.0": "red"}).text
    none = client.post("/tools/shop.ship", {**form, "arg.parcel.tags.0": "red", "$do": "remove:arg.parcel.tags.0"}).text

    assert 'id="f-arg.parcel.tags.0"' in one
    assert 'id="f-arg.parcel.tags.1"' in two
    assert ">\nred</textarea>" in two
    assert 'id="f-arg.parcel.tags.0"' not in none
    assert 'name="arg.parcel.to.street"' in none
    assert ">\nMain</textarea>" in none


def test_json_that_was_edited_last_fills_the_fields(client: Client) -> None:
    """Without JavaScript the user says what counts."""
    text = json.dumps({"item": "pen", "count": 3})
    html = client.post("/tools/shop.price", {"$edited": "json", "$json": text, "$do": "show"}).text

    assert 'name="arg.count" value="3"' in html
    assert ">\npen</textarea>" in html


def test_run_calls_the_tool_with_exact_values(client: Client, workshop: Workshop) -> None:
    """The function receives what the preview showed."""
    form = {
        "arg.parcel.to.street": "Main",
        "arg.parcel.to.city": "Rome",
        "arg.parcel.weight": "2",
        "arg.parcel.tags.0": "red",
        "arg.express": "true",
        "arg.notes.$entries.0.$key": "door",
        "arg.notes.$entries.0.$value": "ring twice",
    }
    html = run_to_end(client, "shop.ship", form)

    ((parcel, express, notes),) = workshop.received
    assert (parcel.to, parcel.weight, parcel.tags, parcel.kind) == (
        {"street": "Main", "city": "Rome"},
        2.0,
        ["red"],
        "letter",
    )
    assert type(parcel.weight) is float
    assert (express, notes) == (True, {"door": "ring twice"})
    assert "city Rome" in text_of(html)


def test_run_with_a_problem_shows_the_form_again(client: Client, workshop: Workshop) -> None:
    """Nothing runs, and what was entered is still there."""
    response = client.post("/tools/shop.price/run", {"$do": "run", "arg.item": "pen", "arg.count": "many"})

    assert response.status_code == 422
    assert 'value="many"' in response.text
    assert 'aria-invalid="true"' in response.text
    assert workshop.received == []


def test_tool_with_effects_does_not_run(client: Client, workshop: Workshop) -> None:
    """The page says why, the button is disabled, and a request without the page is refused too."""
    page = client.get("/tools/shop.order").text
    response = client.post("/tools/shop.order/run", {"$do": "run", "arg.item": "pen"})

    assert "data-run disabled" in page
    assert "start the console with --run-effects" in text_of(page)
    assert response.status_code == 403
    assert workshop.received == []


def test_tool_with_effects_runs_if_the_console_permits_it(effects_console: ServedConsole, workshop: Workshop) -> None:
    """With ``run_effects`` it runs as the policy permits."""
    html = run_to_end(effects_console.sign_in(), "shop.order", {"arg.item": "pen"})

    assert workshop.received == ["pen"]
    assert "ordered pen" in text_of(html)


def test_viewer_cannot_run_a_tool(console: ServedConsole, workshop: Workshop) -> None:
    """A viewer may read and check."""
    client = console.sign_in(User("vera", "viewer"))

    assert client.post("/tools/shop.price/check", {"arg.item": "pen"}).status_code == 200
    assert client.post("/tools/shop.price/run", {"$do": "run", "arg.item": "pen"}).status_code == 403
    assert "data-run" not in client.get("/tools/shop.price").text
    assert workshop.received == []


def test_secret_is_in_no_response(client: Client, workshop: Workshop) -> None:
    """The tool receives it; no page, fragment, code sample or JSON contains it, also not after an error."""
    form = {"arg.user": "ada", "arg.password": SECRET}
    both = json.dumps({"user": "ada", "password": SECRET})
    moved = json.dumps({"user": {"$secret": "arg.password"}, "password": {"$secret": "arg.password"}})
    responses = [
        client.post("/tools/shop.login/check", form).text,
        client.post("/tools/shop.login/fields", form).text,
        client.post("/tools/shop.login", {**form, "$do": "show"}).text,
        client.post("/tools/shop.login/run", {"$do": "run", "arg.password": SECRET}).text,
        client.post("/tools/shop.login", {"$edited": "json", "$json": both}).text,
        client.post("/tools/shop.login/check", {"$edited": "json", "$json": both}).text,
        client.post("/tools/shop.login/check", {"$edited": "json", "$json": both[:-1]}).text,
        client.post("/tools/shop.login/check", {**form, "$edited": "json", "$json": moved}).text,
        run_to_end(client, "shop.login", form),
    ]
    (received,) = workshop.received

    assert received == ("ada", SECRET)
    assert [number for number, html in enumerate(responses) if SECRET in html] == []
    assert f"ada has {len(SECRET)} characters" in text_of(responses[-1])


def test_code_samples_are_quoted_and_have_no_secret(client: Client) -> None:
    """The command line is a command with the same arguments for a shell."""
    hostile = 'it\'s $(touch x) "quoted" ; `id` é'
    html = client.post("/tools/shop.login/check", {"arg.user": hostile, "arg.password": SECRET}).text
    found = re.search(r'<pre class="code" id="call-cli"[^>]*>(.*?)</pre>', html, re.DOTALL)
    assert found is not None
    words = shlex.split(unescape(found[1]))
    printed = subprocess.run(
        ["sh", "-c", f"set -- {unescape(found[1])}; printf '%s' \"$5\""], capture_output=True, text=True, check=True
    )

    assert words[:4] == ["neuroscript", "call", "shop.login", "--input-json"]
    assert json.loads(words[4]) == {"user": hostile, "password": "YOUR_SECRET"} == json.loads(printed.stdout)


def test_python_sample_is_python(client: Client) -> None:
    """It compiles, whatever the arguments are."""
    html = client.post("/tools/shop.price/check", {"arg.item": "a'b\"\n\\", "arg.count": "2"}).text
    found = re.search(r'<pre class="code" id="call-python"[^>]*>(.*?)</pre>', html, re.DOTALL)
    assert found is not None

    compile(unescape(found[1]), "sample", "exec")
    assert sys.version_info >= (3, 11)


def test_result_has_views_that_are_links(client: Client) -> None:
    """A list of rows is shown as a table until the user asks for a tree or text."""
    table = run_to_end(client, "shop.rows")
    links = [unescape(each) for each in re.findall(r'href="([^"]+view=[a-z]+)"', table)]
    tree = client.get(next(each for each in links if each.endswith("tree"))).text
    text = client.get(next(each for each in links if each.endswith("text"))).text

    assert 'class="node' in tree
    assert '<th scope="col">price</th>' in table
    assert "<td>&lt;b&gt;ink&lt;/b&gt;</td>" in table
    assert '"price": 1.5' in text_of(text)


def test_picture_is_served_as_a_picture_only(client: Client) -> None:
    """Its media type comes from its bytes."""
    (source,) = re.findall(r'<img src="([^"]+)"', run_to_end(client, "shop.picture"))
    response = client.get(source)

    assert response.content == RED_DOT
    assert response.headers["content-type"] == "image/png"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]


def test_svg_is_never_served(client: Client) -> None:
    """A tool that calls a document a picture gets neither a page nor an image of it."""
    html = run_to_end(client, "shop.drawing")
    page = client.get(unescape(re.findall(r'href="([^"]+view=picture)"', html)[0])).text
    sources = re.findall(r'<img src="([^"]+)"', page)

    assert [client.get(source).content for source in sources] == [RED_DOT]
    assert client.get(sources[0]).headers["content-type"] == "image/png"
    assert client.get(sources[0].replace("/0", "/1")).status_code == 404
    assert SCRIPT_PICTURE.decode() not in page


def test_call_of_another_browser_is_not_shown(console: ServedConsole) -> None:
    """Each browser sees its own calls only."""
    one, other = console.sign_in(), console.sign_in()
    address = one.post("/tools/shop.picture/run", {"$do": "run"}).headers["location"]

    assert one.get(address).status_code == 200
    assert other.get(address).status_code == 404
    assert other.get(f"{address}/pictures/0").status_code == 404


def test_session_shows_its_own_variables(console: ServedConsole) -> None:
    """Each browser has its own."""
    one, other = console.sign_in(), console.sign_in()
    run_to_end(one, "shop.remember", {"arg.value": "<i>mine</i>"})

    assert "remembered str <i>mine</i>" in text_of(one.get("/session").text)
    assert "remembered" not in text_of(other.get("/session").text)


def test_files_of_the_sandbox_are_suggested(client: Client) -> None:
    """An argument that names a file in a need of the tool suggests the files that may be read."""
    assert '<option value="a.txt"></option>' in client.get("/tools/shop.read").text


def test_cancel_without_javascript(client: Client, workshop: Workshop) -> None:
    """The button of the page of a running call stops the tool."""
    address = client.post("/tools/shop.wait/run", {"$do": "run"}).headers["location"]
    assert workshop.waiting.wait(30)
    running = client.get(address).text
    client.post(re.findall(r'action="([^"]+/cancel)"', running)[0])
    after = client.get(address).text

    assert 'class="running"' in running
    assert "cancelled" in text_of(after)
    for _ in range(1_000):
        if workshop.ended:
            break
        sleep(0.01)
    assert workshop.ended == ["wait"]


def test_example_fills_the_form(client: Client) -> None:
    """Examples are links, with arguments in order or by name."""
    page = client.get("/tools/shop.repeat").text
    first, second = re.findall(r'href="(/tools/shop.repeat\?example=\d)"', page)
    filled = client.get(first).text

    assert 'name="arg.times" value="3"' in filled
    assert ">\nab</textarea>" in filled
    assert ">\n&lt;b&gt;</textarea>" in client.get(second).text
    assert '{"text": "ab", "times": 3} returns "ababab"' in text_of(page)


def test_old_name_and_deprecation_are_shown(client: Client) -> None:
    """An old name leads to the page of the tool."""
    text = text_of(client.get("/tools/shop.again").text)

    assert "deprecated use str.repeat" in text
    assert "Old names shop.again" in text


def test_call_that_needs_an_approval_leads_to_the_approvals(workshop: Workshop, tmp_path: Path) -> None:
    """The preview says so, and the running call has a link; after the answer, the result is there."""
    inbox = Inbox()
    policy = ExecutionPolicy(approver=inbox)
    with serving(app(workshop.engine(tmp_path, policy=policy), inbox=inbox)) as served:
        client = served.sign_in()
        preview = text_of(client.post("/tools/shop.confidential/check", {"arg.item": "a"}).text)
        address = client.post("/tools/shop.confidential/run", {"$do": "run", "arg.item": "a"}).headers["location"]
        for _ in range(1_000):
            if inbox.waiting:
                break
            sleep(0.01)
        running = client.get(address).text
        (waiting,) = inbox.waiting
        inbox.answer(waiting.id, Approval.approve(), digest=waiting.request.digest, by="ada")
        for _ in range(1_000):
            html = client.get(address).text
            if 'class="running"' not in html:
                break
            sleep(0.01)

    assert "needs approval" in preview
    assert 'href="/approvals"' in running.partition("<main")[2]
    assert "contents of a" in text_of(html)


def test_prompt_is_refused(effects_console: ServedConsole) -> None:
    """A tool cannot read from the terminal of the server."""
    text = text_of(run_to_end(effects_console.sign_in(), "shop.ask"))

    assert "prompt.noninteractive shop.ask: tools that the web console runs cannot prompt a user" in text


def test_output_and_log_go_to_the_page(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """What a tool prints is on the page, escaped, and not in the output of the server."""
    html = run_to_end(client, "shop.talk")

    assert "output printed \\x1b[31mred warning logged <i>text</i>" in text_of(html)
    assert "<i>" not in html
    assert "printed" not in capsys.readouterr().out


def test_secret_of_the_host_is_in_no_message(tmp_path: Path) -> None:
    """What a tool logs, prints and reports is redacted before it reaches the page."""
    tools = Toolset("leak")

    @tools.tool(policy=ToolPolicy(effects=("reads",), capabilities=("secret:read:token",)))
    def leak(rt: Runtime) -> Iterator[str]:
        """Send a secret everywhere."""
        value = rt.secret("token")
        rt.logger.info("the token is %s", value)
        rt.println(value)
        rt.progress(1, 2, value)
        rt.set_var("token", value)
        yield f"item {value}"

    host = Host(sandbox_dir=tmp_path, secrets={"token": SECRET})
    policy = ExecutionPolicy(grants=("secret:read:token",))
    with serving(app(Engine(plugins=(), toolsets=[tools], host=host, policy=policy))) as served:
        client = served.sign_in()
        html = run_to_end(client, "leak.leak")
        session = client.get("/session").text

    assert "the token is" in text_of(html)
    assert [SECRET in each for each in (html, session)] == [False, False]


def test_busy_tool_delays_no_request(client: Client, workshop: Workshop) -> None:
    """A tool that computes for long runs on a thread of its own, even after its call was cancelled."""
    addresses = [client.post("/tools/shop.spin/run", {"$do": "run"}).headers["location"] for _ in range(2)]
    assert workshop.waiting.wait(30)
    cancel = re.findall(r'action="([^"]+/cancel)"', client.get(addresses[0]).text)[0]
    client.post(cancel)

    assert "cancelled" in text_of(client.get(addresses[0]).text)
    assert client.post("/tools/shop.price/check", {"arg.item": "pen"}).status_code == 200
    workshop.go.set()
    for _ in range(1_000):
        if "spun" in client.get(addresses[1]).text:
            break
        sleep(0.01)
    assert "spun" in client.get(addresses[1]).text


def test_call_leads_to_its_records(workshop: Workshop, tmp_path: Path) -> None:
    """With an audit log, the page of a call links to the records of this tool and this browser."""
    log = tmp_path / "audit.jsonl"
    with serving(app(workshop.engine(tmp_path, audit=log), audit=[log])) as served:
        client = served.sign_in()
        html = run_to_end(client, "shop.price", {"arg.item": "pen"})
        (address,) = re.findall(r'href="(/audit[^"]+)"', html.partition("<main")[2])
        records = text_of(client.get(unescape(address)).text)

    assert "tool=shop.price" in address
    assert "shop.price" in records.partition("Outcome")[2]
