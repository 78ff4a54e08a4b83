"""An agent that reads files and adds numbers with tools, and prints a transcript at the end."""

import argparse
import sys
import tempfile
from pathlib import Path

from neuroscript import Engine, ExecutionPolicy, Host
from neuroscript.llm import ConversationError, converse, model, transcript

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("prompt")
parser.add_argument("--model", default="pocket")
parser.add_argument("--base-url", default="", help="the address of the server; by default the vendor's own")
parser.add_argument("--api", default="", help="openai-chat, openai-responses or anthropic")
parser.add_argument("--whole", action="store_true", help="wait for complete replies instead of streaming them")
options = parser.parse_args()

policy = ExecutionPolicy(grants=["fs:read:*"], deny=["fs.delete"])

with (
    model(options.model, base_url=options.base_url, api=options.api, stream=not options.whole) as client,
    tempfile.TemporaryDirectory() as sandbox,
):
    Path(sandbox, "prices.txt").write_text("184.50 and 96.20")
    with Engine(policy=policy, host=Host(sandbox_dir=sandbox)) as engine:
        try:
            conversation = converse(engine, options.prompt, tools=("fs.*", "math.*"), model=client, turns=8)
        except ConversationError as error:
            print(transcript(error.conversation))
            sys.exit(f"{error.code}: {error}")

print(transcript(conversation))
print(f"tokens: {conversation.usage.input_tokens} in, {conversation.usage.output_tokens} out")
