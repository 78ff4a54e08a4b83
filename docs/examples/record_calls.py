"""Record three calls, and print the recording: ``python docs/examples/record_calls.py | neuroscript replay -``."""

import tempfile
from pathlib import Path

from neuroscript import Engine, Recording, ToolCall

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "calls.jsonl")
    with Engine(recording=Recording(path)) as engine:
        for name, args in (("math.add", (2, "3")), ("math.divide", (1, 0)), ("time.now", ())):
            engine.execute(ToolCall(name, args))
    print(path.read_text(), end="")
