"""Resources, prompts and completions that are served to the client of the SDK."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp_types import PromptReference, ResourceTemplateReference
from tests.interop.mcp_notes import NOTES, PICTURE, toolset
from tests.interop.mcp_place import Place, served, until

from neuroscript import (
    Content,
    EmbeddedResource,
    Engine,
    ExecutionPolicy,
    Host,
    Image,
    MemoryAudit,
    Prompt,
    Resource,
    ResourceLink,
    SpecError,
    ToolCall,
    ToolPolicy,
    Toolset,
    tool,
)
from neuroscript.interop.mcp import ask_client, serve
from neuroscript.interop.mcp.server.files import MAX_FILE_BYTES
from neuroscript.interop.mcp.server.files import toolset as file_tools
from neuroscript.interop.mcp.server.resources import contents

ROOT = Path(__file__).parents[2]
PLUGIN = Path(__file__).with_name("mcp_notes.py")
POLICY = ExecutionPolicy(grants=("fs:read:docs/**", "fs:read:other.txt"))
INVALID, INTERNAL, NOT_FOUND = -32602, -32603, -32002

Test = Callable[[Client], Coroutine[Any, Any, None]]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A sandbox with files, one of which is served only if the policy permits it."""
    for path, data in {
        "docs/a b.md": b"# One",
        "docs/deep/b.json": b"{}",
        "docs/picture.png": PICTURE + b"\xff",
        "other.txt": b"other",
        "secret.txt": b"secret",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return tmp_path


@pytest.fixture
def place(box: Path) -> Iterator[Place]:
    options = {"policy": POLICY, "host": Host(sandbox_dir=box)}
    with served(plugin=PLUGIN, resources=("docs/**", "secret.txt"), options=options) as place:
        yield place


def ask(place: Place, test: Test, heard: list[Any] | None = None) -> None:
    """Run a test with a client over HTTP."""

    async def hear(message: Any) -> None:
        if heard is not None:
            heard.append(message)

    async def main() -> None:
        async with Client(place.url, mode="legacy", message_handler=hear) as client:
            await test(client)

    asyncio.run(main())


async def code_of(request: Coroutine[Any, Any, Any]) -> int:
    """Return the code of the error with which a request fails."""
    with pytest.raises(MCPError) as found:
        await request
    return int(found.value.error.model_dump()["code"])


def added_later() -> str:
    """Return a prompt."""
    return ""


def echo(name: str) -> str:
    """Return the argument."""
    return name


def test_lists(place: Place) -> None:
    """Clients see the resources, templates and prompts, and as tools only what is offered as tools."""

    async def test(client: Client) -> None:
        offered = client.server_capabilities
        assert offered.resources is not None and offered.prompts is not None and offered.completions is not None
        assert (True, True, True) == (
            offered.resources.subscribe,
            offered.resources.list_changed,
            offered.prompts.list_changed,
        )
        resources = {str(each.uri): each for each in (await client.list_resources()).resources}
        templates = {each.uri_template: each for each in (await client.list_resource_templates()).resource_templates}
        prompts = {each.name: each for each in (await client.list_prompts()).prompts}
        tools = [each.name for each in (await client.list_tools()).tools]

        notes = ["broken", "count", "index", "picture", "secret"]
        files = ["docs/a%20b.md", "docs/deep/b.json", "docs/picture.png"]
        assert [*(f"notes://{each}" for each in notes), *(f"sandbox:///{each}" for each in files)] == [*resources]
        index, file = resources["notes://index"], resources["sandbox:///docs/a%20b.md"]
        assert ("notes.index", "Index", "List the names of all notes.") == (index.name, index.title, index.description)
        assert ("docs/a b.md", "text/markdown", 5) == (file.name, file.mime_type, file.size)
        assert ["notes://line/{name}/{number}", "notes://note/{name}", "sandbox:///{+path}"] == [*templates]
        assert "text/markdown" == templates["notes://note/{name}"].mime_type
        assert ["notes__compare", "notes__malformed", "notes__sum_up"] == [*prompts]
        arguments = [(each.name, each.description, each.required) for each in prompts["notes__sum_up"].arguments or ()]
        assert [
            ("name", "The note.", True),
            ("style", "How long the summary is.", False),
            ("strict", None, False),
        ] == arguments
        assert ["notes__add", "notes__count"] == tools

    ask(place, test)


@pytest.mark.parametrize(
    ("uri", "kind", "content"),
    [
        ("notes://index", "application/json", '["a"]'),
        ("notes://note/a%2Fb", "text/markdown", NOTES["a/b"]),
        ("notes://line/x/4", "text/plain", "x:5"),
        ("notes://picture", "image/png", PICTURE),
        ("notes://count", "application/json", "2"),
        ("sandbox:///docs/a%20b.md", "text/markdown", "# One"),
        ("sandbox:///docs/../docs/deep/b.json", "application/json", "{}"),
        ("sandbox:///docs/picture.png", "image/png", PICTURE + b"\xff"),
    ],
)
def test_read(place: Place, uri: str, kind: str, content: str | bytes) -> None:
    """A resource is text, JSON or bytes, with its media type."""
    from base64 import b64decode

    async def test(client: Client) -> None:
        (found,) = (await client.read_resource(uri)).contents
        value = found.text if hasattr(found, "text") else b64decode(found.blob)
        assert (uri, kind, content) == (str(found.uri), found.mime_type, value)

    ask(place, test)


@pytest.mark.parametrize(
    ("uri", "code", "message"),
    [
        ("notes://nothing", NOT_FOUND, "resource not found"),
        ("notes://note/nothing", NOT_FOUND, "resource not found"),
        ("sandbox:///docs/nothing", NOT_FOUND, "resource not found"),
        ("sandbox:///other.txt", NOT_FOUND, "resource not found"),
        ("sandbox:///../secret", NOT_FOUND, "resource not found"),
        ("sandbox-files:///docs?pattern=x", NOT_FOUND, "resource not found"),
        ("sandbox:///secret.txt", INTERNAL, "error policy.capability: needs fs:read:secret.txt"),
        ("notes://secret", INTERNAL, "error policy.capability: needs notes:read"),
        ("notes://broken", INTERNAL, "error notes.full: the disk is full"),
        ("notes://line/x/y", INVALID, "error coercion.format: number: expected int, got str"),
    ],
)
def test_failed_read(place: Place, uri: str, code: int, message: str) -> None:
    """A read that fails is an error of the protocol, with a message without values."""

    async def test(client: Client) -> None:
        with pytest.raises(MCPError) as found:
            await client.read_resource(uri)
        error = found.value.error.model_dump()
        assert (code, message) == (error["code"], error["message"][: len(message)])

    ask(place, test)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("resources__read_file", {"path": "other.txt"}),
        ("resources.read_file", {"path": "docs/a b.md"}),
        ("resources__list_files", {"directory": "docs", "pattern": "**"}),
        ("notes__note", {"name": "a"}),
        ("notes__sum_up", {"name": "a"}),
    ],
)
def test_resource_cannot_be_called_as_a_tool(
    place: Place, mode: Literal["legacy", "auto"], name: str, arguments: dict[str, Any]
) -> None:
    """A tool that is only a resource or a prompt is unknown to ``tools/call``, which would ignore the served patterns."""

    async def main() -> None:
        async with Client(place.url, mode=mode) as client:
            result = await client.call_tool(name, arguments)
            assert result.is_error and result.structured_content is None
            (block,) = result.model_dump()["content"]
            assert block["text"].startswith("error tool.not_found: no tool with this name is available.")

    asyncio.run(main())


def test_content_of_a_resource() -> None:
    """Blocks are several parts of one resource, and an embedded resource keeps its URI; a link has no content."""
    blocks = "One.", Image(PICTURE, "image/png"), EmbeddedResource("notes://a", b"icon"), ResourceLink("notes://b", "b")

    assert [
        {"uri": "notes://all", "mimeType": "text/plain", "text": "One."},
        {"uri": "notes://all", "mimeType": "image/png", "blob": "iVBORw0KGgpyZXN0"},
        {"uri": "notes://a", "blob": "aWNvbg=="},
    ] == contents("notes://all", Resource("notes://all"), Content(*blocks))


def test_prompts(place: Place) -> None:
    """A prompt is one message, or several with pictures and resources; its arguments are coerced."""

    async def test(client: Client) -> None:
        (message,) = (await client.get_prompt("notes__sum_up", {"name": "a", "strict": "true"})).messages
        assert ("user", "Sum up the note a (short, True).") == (message.role, message.content.text)
        compared = (await client.get_prompt("notes__compare")).model_dump(mode="json", exclude_none=True)["messages"]
        assert [
            ("user", {"type": "image", "data": "iVBORw0KGgpyZXN0", "mime_type": "image/png"}),
            (
                "user",
                {
                    "type": "resource",
                    "resource": {"uri": "notes://note/a", "mime_type": "text/markdown", "text": "The first note."},
                },
            ),
            (
                "user",
                {
                    "type": "resource",
                    "resource": {"uri": "notes://icon", "mime_type": "image/png", "blob": "aWNvbg=="},
                },
            ),
            ("user", {"type": "resource_link", "uri": "notes://index", "name": "index"}),
            ("assistant", {"type": "text", "text": "They are equal."}),
        ] == [(each["role"], each["content"]) for each in compared]
        assert INVALID == await code_of(client.get_prompt("notes__sum_up", {}))
        assert INVALID == await code_of(client.get_prompt("notes__sum_up", {"name": "a", "style": "wide"}))
        assert INVALID == await code_of(client.get_prompt("notes__add", {"name": "a"}))
        assert INTERNAL == await code_of(client.get_prompt("notes__malformed"))

    ask(place, test)


def test_completions(place: Place) -> None:
    """Arguments with choices, booleans and paths of files are completed."""

    async def test(client: Client) -> None:
        async def complete(ref: Any, name: str, value: str) -> list[str]:
            return list((await client.complete(ref, {"name": name, "value": value})).completion.values)

        prompt = PromptReference(name="notes__sum_up")
        note = ResourceTemplateReference(uri="notes://note/{name}")
        assert ["short"] == await complete(prompt, "style", "S")
        assert ["true", "false"] == await complete(prompt, "strict", "")
        assert [] == await complete(prompt, "name", "a")
        assert [] == await complete(note, "name", "a")
        file = ResourceTemplateReference(uri="sandbox:///{+path}")
        assert ["docs/deep/b.json"] == await complete(file, "path", "docs/d")
        assert INVALID == await code_of(complete(prompt, "nothing", ""))
        assert INVALID == await code_of(complete(PromptReference(name="nothing"), "name", ""))
        assert INVALID == await code_of(complete(ResourceTemplateReference(uri="notes://{x}"), "x", ""))

    ask(place, test)


def test_notifications(place: Place, box: Path) -> None:
    """Clients are notified of changed lists, and of the resources that they have subscribed to."""
    heard: list[Any] = []

    def names() -> list[str]:
        return sorted({f"{type(each).__name__} {getattr(each.params, 'uri', '')}".strip() for each in heard})

    async def until(wanted: set[str]) -> None:
        async with asyncio.timeout(20):
            while not wanted.issubset(names()):
                await asyncio.sleep(0.05)

    async def test(client: Client) -> None:
        for uri in ("notes://index", "sandbox:///docs/a%20b.md", "sandbox:///docs/deep/b.json"):
            await client.session.subscribe_resource(uri)
        await client.session.unsubscribe_resource("sandbox:///docs/deep/b.json")
        await asyncio.sleep(1.2)
        assert [] == names()

        (box / "docs/a b.md").write_bytes(b"# Changed")
        (box / "docs/deep/b.json").write_bytes(b"[1, 2]")
        await client.call_tool("notes__add", {"name": "b"})
        await until(
            {"ResourceUpdatedNotification notes://index", "ResourceUpdatedNotification sandbox:///docs/a%20b.md"}
        )
        assert 2 == len(names())

        (box / "docs/new.md").write_text("new")
        await until({"ResourceListChangedNotification"})
        place.engine.register(tool(added_later, group="more", prompt=Prompt()))
        await until({"PromptListChangedNotification"})

    ask(place, test, heard)


def test_without_a_handshake(place: Place) -> None:
    """Clients of protocol 2026-07-28 have the same resources and prompts; an unknown resource has another code."""

    async def main() -> None:
        async with Client(place.url) as client:
            assert "2026-07-28" == client.protocol_version
            resources = [str(each.uri) for each in (await client.list_resources()).resources]
            assert ["notes://index", "sandbox:///docs/deep/b.json"] == [resources[2], resources[-2]]
            assert 3 == len((await client.list_resource_templates()).resource_templates)
            assert NOTES["a"] == (await client.read_resource("notes://note/a")).contents[0].text
            assert INVALID == await code_of(client.read_resource("notes://nothing"))
            (message,) = (await client.get_prompt("notes__sum_up", {"name": "a"})).messages
            assert "Sum up the note a (short, False)." == message.content.text

    asyncio.run(main())


def test_listening(place: Place, box: Path) -> None:
    """Clients of protocol 2026-07-28 listen to changes; a resource without subscriptions is ignored.

    Afterwards, nothing of it is left.
    """

    async def main() -> None:
        uris = ["sandbox:///docs/a%20b.md", "notes://index", "notes://picture", "notes://nothing"]
        async with (
            Client(place.url) as client,
            client.listen(resource_subscriptions=uris, prompts_list_changed=True, resources_list_changed=True) as heard,
        ):
            await asyncio.sleep(1.2)
            (box / "docs/a b.md").write_bytes(b"# Changed")
            (box / "docs/new.md").write_text("new")
            place.engine.register(tool(added_later, group="more", prompt=Prompt()))
            wanted = {ResourceUpdated("sandbox:///docs/a%20b.md"), ResourcesListChanged(), PromptsListChanged()}
            async with asyncio.timeout(20):
                async for event in heard:
                    wanted.discard(event)
                    if not wanted:
                        break

    asyncio.run(main())
    watch = place.service.resources._watch_of(place.service._common_client())
    until(lambda: not watch.uris)
    assert not [each for each in vars(watch).values() if isinstance(each, dict) and "notes://index" in each]


def test_files_are_searched_while_a_client_listens(place: Place) -> None:
    """Not after each request without a handshake, because that costs time."""

    async def main() -> None:
        async with Client(place.url) as client:
            await client.list_resources()
            await asyncio.sleep(1.2)
            assert not place.service.resources._found
            async with client.listen(resources_list_changed=True), asyncio.timeout(10):
                while not place.service.resources._found:
                    await asyncio.sleep(0.05)

    asyncio.run(main())


def test_subscriptions_that_are_refused(place: Place) -> None:
    """A client subscribes to existing resources that can be subscribed to, and not to any number of them."""

    async def test(client: Client) -> None:
        assert NOT_FOUND == await code_of(client.session.subscribe_resource("notes://nothing"))
        assert INVALID == await code_of(client.session.subscribe_resource("notes://picture"))
        for number in range(100):
            await client.session.subscribe_resource(f"sandbox:///docs/{number}")
        assert INVALID == await code_of(client.session.subscribe_resource("sandbox:///docs/more"))
        await client.session.subscribe_resource("sandbox:///docs/1")

    ask(place, test)


def test_what_cannot_be_read_cannot_be_subscribed_to(box: Path) -> None:
    """Otherwise each check would be a refused call in the audit log, or ask an approver every few seconds."""
    needs = ToolPolicy(capabilities=("notes:read:{name}",)), ToolPolicy(requires_approval=True)
    uris = ["sandbox:///secret.txt", "more0://a", "more1://a"]

    async def test(client: Client) -> None:
        for uri in uris:
            assert INVALID == await code_of(client.session.subscribe_resource(uri))

    async def main(place: Place) -> None:
        watched = place.service.resources._watch_of(place.service._common_client()).uris
        async with Client(place.url) as client, client.listen(resource_subscriptions=[*uris, "notes://index"]):
            assert ["notes://index"] == [*watched]

    options = {
        "policy": ExecutionPolicy(grants=POLICY.grants, approver=ask_client),
        "host": Host(sandbox_dir=box),
        "toolsets": [
            tool(
                echo,
                group=f"more{number}",
                policy=policy,
                resource=Resource(f"more{number}://{{name}}", subscribable=True),
            )
            for number, policy in enumerate(needs)
        ],
    }
    with served(plugin=PLUGIN, resources=("docs/**", "secret.txt"), options=options) as place:
        ask(place, test)
        asyncio.run(main(place))


def test_subscriptions_at_the_same_time_are_limited_and_leave_nothing(place: Place) -> None:
    """The limit applies before the first read ends, and a client that changes its subscriptions needs no more memory."""
    place.engine.register(tool(echo, group="more", resource=Resource("more://{name}", subscribable=True)))

    async def test(client: Client) -> None:
        uris = [f"more://{number}" for number in range(150)]
        results = await asyncio.gather(*map(client.session.subscribe_resource, uris), return_exceptions=True)
        assert 100 == sum(not isinstance(each, BaseException) for each in results)
        (connected,) = place.service.clients
        watch = place.service.resources._watch_of(connected)
        assert 100 == len(watch.uris)
        for uri in uris:
            await client.session.unsubscribe_resource(uri)
        assert {} == watch.uris

    ask(place, test)


def test_subscription_to_another_spelling_of_a_path(place: Place, box: Path) -> None:
    """A client that can read the URI is also notified under it."""
    heard: list[Any] = []
    uri = "sandbox:///docs/./deep/../a%20b.md"

    async def test(client: Client) -> None:
        await client.session.subscribe_resource(uri)
        (box / "docs/a b.md").write_bytes(b"# Changed")
        async with asyncio.timeout(20):
            while uri not in [str(getattr(each.params, "uri", "")) for each in heard]:
                await asyncio.sleep(0.05)

    ask(place, test, heard)


def test_reads_are_calls(box: Path) -> None:
    """Each read and each prompt is a call of a tool: it is recorded, and the policy may deny it."""
    audit = MemoryAudit()
    policy = ExecutionPolicy(grants=POLICY.grants, deny=("notes.note",))
    options = {"policy": policy, "host": Host(sandbox_dir=box), "audit": audit}

    async def test(client: Client) -> None:
        await client.read_resource("notes://count")
        await client.read_resource("sandbox:///docs/a%20b.md")
        await client.get_prompt("notes__sum_up", {"name": "a"})
        assert NOT_FOUND == await code_of(client.read_resource("notes://note/a"))

    with served(plugin=PLUGIN, resources=("docs/**",), options=options) as place:
        ask(place, test)

    assert ["notes.count", "resources.read_file", "notes.sum_up"] == [each.tool for each in audit.records]


def test_tools_choose_resources_and_prompts(box: Path) -> None:
    """The patterns of tools apply to resources and prompts too, but not to the files that are served."""
    options = {"policy": POLICY, "host": Host(sandbox_dir=box)}

    async def test(client: Client) -> None:
        resources = [str(each.uri) for each in (await client.list_resources()).resources]
        assert ["notes://count", "sandbox:///docs/deep/b.json"] == resources
        assert [] == (await client.list_prompts()).prompts
        assert NOT_FOUND == await code_of(client.read_resource("notes://index"))

    with served(plugin=PLUGIN, tools=("notes.count",), resources=("docs/deep/*",), options=options) as place:
        ask(place, test)


def test_long_lists(place: Place) -> None:
    """Long lists have pages, whose order does not depend on changes between them."""
    many = Toolset("many")
    for number in range(1_200):

        @many.prompt(name=f"p{number:04}")
        def prompt() -> str:
            return ""

    place.engine.register(many)

    async def test(client: Client) -> None:
        sizes, names, cursor = [], [], None
        while cursor is not None or not sizes:
            page = await client.list_prompts(cursor=cursor)
            sizes.append(len(page.prompts))
            names += [each.name for each in page.prompts]
            cursor = page.next_cursor
        assert ([500, 500, 203], 1_203) == (sizes, len({*names}))

    ask(place, test)


def test_large_file(place: Place, box: Path) -> None:
    """A file that is too large is listed but not read."""
    (box / "docs/large").write_bytes(bytes(4 * 1024 * 1024 + 1))

    async def test(client: Client) -> None:
        with pytest.raises(
            MCPError, match=r"limit\.fs_bytes: the file has more than the 4194304 bytes that are served"
        ):
            await client.read_resource("sandbox:///docs/large")

    ask(place, test)


def test_file_that_grows_while_it_is_read(box: Path) -> None:
    """The limit applies to what is read, not to the size that the file had before."""
    file = box / "docs/growing"
    file.write_bytes(b"x")
    options = {"policy": POLICY, "host": Host(sandbox_dir=box)}
    ended = threading.Event()

    def grow() -> None:
        while not ended.is_set():
            os.truncate(file, MAX_FILE_BYTES + 1)
            os.truncate(file, 1)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        with Engine(plugins="none", toolsets=[file_tools], **options) as engine:
            for _ in range(1_000):
                result = engine.execute(ToolCall("resources.read_file", {"path": "docs/growing"}))
                if result.error is None:
                    assert len(result.value) <= MAX_FILE_BYTES
                else:
                    assert (result.error.code, result.error.retry) == ("limit.fs_bytes", "host")
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (".", "resources: . matches no file; use a pattern such as docs/**"),
        ("../x", "resources: the path leads out of the sandbox"),
        ("/etc/*", "resources: a path must be relative to the sandbox"),
    ],
)
def test_invalid_pattern(pattern: str, problem: str) -> None:
    """A pattern that cannot match a file of the sandbox is rejected when the service is created."""
    with Engine(plugins="none") as engine, pytest.raises(SpecError) as found:
        serve(engine, resources=pattern)

    assert (problem,) == found.value.problems


def test_two_services_of_one_engine() -> None:
    """The tools for files are added to an engine once."""
    with Engine(plugins="none", toolsets=[toolset]) as engine:
        for _ in range(2):
            serve(engine, resources="docs/**")

        assert {each.name for each in file_tools} < {*engine.tools}


def test_over_stdio(box: Path) -> None:
    """The command serves resources and prompts over standard streams."""
    words = ["-p", str(PLUGIN), "--sandbox", str(box), "--resources", "docs/*", "--grant", "fs:read:docs/**"]
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "neuroscript", "mcp", "serve", *words], env={**os.environ}, cwd=str(ROOT)
    )

    async def main() -> None:
        async with Client(stdio_client(parameters)) as client:
            resources = [str(each.uri) for each in (await client.list_resources()).resources]
            assert ["sandbox:///docs/a%20b.md", "sandbox:///docs/picture.png"] == resources[-2:]
            (found,) = (await client.read_resource("notes://note/a")).contents
            assert NOTES["a"] == found.text
            (message,) = (await client.get_prompt("notes__sum_up", {"name": "a"})).messages
            assert "Sum up the note a (short, False)." == message.content.text

    asyncio.run(main())
