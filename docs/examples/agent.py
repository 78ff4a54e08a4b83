"""An agent: a model reads files and adds numbers by tools, and all that was said and done is shown at the end."""

import argparse
import sys
import tempfile
from pathlib import Path

from neuroscript import Engine, ExecutionPolicy, Host
from neuroscript.llm import ConversationError, converse, model, transcript

words = argparse.ArgumentParser(description=__doc__)
words.add_argument("prompt")
words.add_argument("--model", default="pocket")
words.add_argument("--base-url", default="", help="where the model is; by default where its maker serves it")
words.add_argument("--api", default="", help="openai-chat, openai-responses or anthropic")
words.add_argument("--whole", action="store_true", help="wait for whole replies instead of streaming them")
given = words.parse_args()

policy = ExecutionPolicy(grants=["fs:read:*"], deny=["fs.delete"])

with (
    model(given.model, base_url=given.base_url, api=given.api, stream=not given.whole) as client,
    tempfile.TemporaryDirectory() as sandbox,
):
    Path(sandbox, "prices.txt").write_text("184.50 and 96.20")
    with Engine(policy=policy, host=Host(sandbox_dir=sandbox)) as engine:
        try:
            conversation = converse(engine, given.prompt, tools=("fs.*", "math.*"), model=client, turns=8)
        except ConversationError as error:
            print(transcript(error.conversation))
            sys.exit(f"{error.code}: {error}")

print(transcript(conversation))
print(f"tokens: {conversation.usage.input_tokens} in, {conversation.usage.output_tokens} out")
