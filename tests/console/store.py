"""A store with tools, files, an audit log, plans and runs: what the operator of the tasks and screenshots looks after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, Final

import attrs
from tests.console.conftest import ServedConsole, serving
from tests.console.store_history import line_of_deletion, write_damaged_copy, write_log

from neuroscript import Engine, FileAudit, Host, load_policy
from neuroscript.console import Inbox, app

PLUGIN: Final = Path(__file__).with_name("store_plugin.py")
TOOLS: Final = ("-p", str(PLUGIN), "--grant", "fs:read:**")
"""Options of commands for the same tools, and for what the tasks need."""

KEY: Final = bytes(range(32))
FILES: Final = {
    "letter.txt": "Dear Vera\n",
    "orders/2026-11.csv": "id,customer,total\n7,Vera,31.50\n8,Olga,12.00\n9,Anna,60.00\n",
}
POLICY: Final = """\
# What the agents of the store may do.

[policy]
allow = ["*"]
deny = ["git.push", "shell.*"]
grants = ["fs:read:**", "fs:write:orders/**"]

[policy.limits]
calls = 500
rates = {"fs.*" = "60/minute"}
tool_calls = {"store.refund" = 20}

[[policy.flow]]
from = ["untrusted"]
to = ["money", "code"]
then = "refuse"

[policy.profiles.reader]
deny = ["git.push", "shell.*", "store.refund"]
grants = ["fs:read:orders/**"]
"""
PLAN: Final = """\
# The amount that a customer pays: the quote of an order, less a discount.

name = "invoice"

[inputs.customer]
type = "string"

[inputs.count]
type = "int"
default = 2

[inputs.discount]
type = "float"
default = 0.1

[nodes.quote]
tool = "store.quote"
inputs = { order = { customer = "${input.customer}", lines = [{ item = "lamp", count = "${input.count}" }] } }

[nodes.net]
tool = "store.total"
inputs = { amounts = "${quote.amounts}", discount = "${input.discount}" }

[nodes.label]
tool = "str.toupper"
inputs = { input_string = "${input.customer}" }

[nodes.checksum]
tool = "crypto.hash"
inputs = { input_string = "${label} ${net}", algorithm = "sha256" }

[nodes.receipt]
tool = "str.concat"
inputs = { strings_list = ["${label}", " pays ", "${net}", " EUR, receipt ", "${checksum}"] }
"""


@attrs.frozen
class Store:
    """The store and its console.

    Attributes:
        directory: Contains the sandbox, the policy file, the logs and the plans.
        console: Its console.
        inbox: Where calls that need an approval wait.
    """

    directory: Path
    console: ServedConsole
    inbox: Inbox

    @property
    def engine(self) -> Engine:
        """The engine with its tools."""
        return self.console.engine

    def request(self, tool: str, arguments: dict[str, Any]) -> Caller:
        """Start a call that needs an approval, in the program of somebody else, and return when it waits."""
        before = len(self.inbox)
        caller = Caller.start(lambda: self.engine.call_named(tool, arguments))
        while len(self.inbox) == before and caller.thread.is_alive():
            sleep(0.005)
        return caller


def write_files(directory: Path) -> None:
    """Write what the store has, apart from the databases."""
    for name, text in FILES.items():
        path = directory / "sandbox" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (directory / "policy.toml").write_text(POLICY)
    plans = directory / "plans"
    plans.mkdir()
    (plans / "invoice.toml").write_text(PLAN)
    log = directory / "audit.jsonl"
    write_log(log, KEY)
    write_damaged_copy(log, directory / "restored.jsonl", line_of_deletion(log))


@contextmanager
def opened(directory: Path, **settings: Any) -> Iterator[Store]:
    """Serve the console of the store.

    Args:
        directory: An empty directory.
        settings: Further parameters of `app`.
    """
    write_files(directory)
    inbox = Inbox()
    log = directory / "audit.jsonl"
    engine = Engine(
        policy=attrs.evolve(load_policy(directory / "policy.toml"), approver=inbox),
        host=Host(sandbox_dir=directory / "sandbox"),
        audit=FileAudit(log, key=KEY),
    )
    engine.load_plugin(PLUGIN)
    application = app(
        engine,
        inbox=inbox,
        audit=[log, directory / "restored.jsonl"],
        audit_key=KEY,
        plans=directory / "plans",
        policy_file=directory / "policy.toml",
        **settings,
    )
    with serving(application) as console:
        yield Store(directory, console, inbox)


@attrs.frozen
class Caller:
    """A program that calls a tool, in a thread, and waits for its outcome."""

    thread: Thread
    outcomes: list[Any]

    @classmethod
    def start(cls, call: Callable[[], Any]) -> Caller:
        """Start a call."""
        outcomes: list[Any] = []

        def run() -> None:
            try:
                outcomes.append(call())
            except Exception as error:  # the caller receives it
                outcomes.append(error)

        thread = Thread(target=run, daemon=True)
        thread.start()
        return cls(thread, outcomes)

    def outcome(self) -> Any:
        """Wait for the call, and return its result or its error."""
        self.thread.join(30)
        return self.outcomes[0]
