"""Closing an engine reads the stacks of running threads without crashing the process."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from neuroscript import Engine

CLOSING = """
import gc, sys, time
from threading import Thread
from neuroscript import Engine

class Knot:
    def __init__(self):
        self.itself = self
    def __del__(self):  # by the collector, and another thread goes on
        time.sleep(0.0003)

def levels(depth):
    if depth:
        yield from levels(depth - 1)
    yield depth

def deep(depth):
    return deep(depth - 1) if depth else sum(levels(5))

def busy():
    while True:
        for depth in range(1, 200, 7):
            deep(depth)

for _ in range(3):
    Thread(target=busy, daemon=True).start()
gc.set_threshold(60)
sys.setswitchinterval(1e-6)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    engine = Engine(plugins=[])
    for _ in range(8):
        Knot()
    engine.close(0)
print(gc.isenabled())
"""


@pytest.mark.parametrize("enabled", [True, False])
def test_close_leaves_garbage_collection_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        Engine(plugins="none").close()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.slow
def test_garbage_collection_during_close_does_not_crash(full_counts: bool) -> None:
    seconds = "4" if full_counts else "1.5"
    done = subprocess.run([sys.executable, "-c", CLOSING, seconds], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
