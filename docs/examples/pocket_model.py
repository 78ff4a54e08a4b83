"""A tiny model that can only add numbers, and that writes them as strings, as many models do.

It serves OpenAI's Chat Completions on this machine, streamed or not, while a command runs. POCKET in the command is
replaced by its address:

    python pocket_model.py neuroscript ask "What is 2 + 3?" --tools math.add --model pocket --base-url POCKET
"""

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(body):
    """Return the model's next message: a call for each sum in the prompt, then the results."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        results = [each["content"] for each in body["messages"] if each["role"] == "tool"]
        return {"role": "assistant", "content": f"The tool says {' and '.join(results)}."}
    sums = re.findall(r"([\d.]+)\s*\+\s*([\d.]*\d)", last["content"])
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    if not sums or "math__add" not in names:
        return {"role": "assistant", "content": "I can only add, and only where I may call math.add."}
    calls = [call(number, {"num1": one, "num2": two}) for number, (one, two) in enumerate(sums, start=1)]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def call(number, arguments):
    function = {"name": "math__add", "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "index": number - 1, "type": "function", "function": function}


class Pocket(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send("application/json", {"object": "list", "data": [{"id": "pocket", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said, usage = answer(body), {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        about = {"id": "c1", "created": 0, "model": "pocket", "usage": usage}
        choice = {"index": 0, "finish_reason": "tool_calls" if said.get("tool_calls") else "stop"}
        if not body.get("stream"):
            whole = {**about, "object": "chat.completion", "choices": [{**choice, "message": said}]}
            return self.send("application/json", whole)
        piece = {**about, "object": "chat.completion.chunk", "choices": [{**choice, "delta": said}]}
        return self.send("text/event-stream", piece, "data: {}\n\ndata: [DONE]\n\n")

    def send(self, kind, data, form="{}"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(form.replace("{}", json.dumps(data)).encode())

    def log_message(self, *words):
        """Do not log requests."""


with ThreadingHTTPServer(("127.0.0.1", 0), Pocket) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    command = [word.replace("POCKET", url) for word in sys.argv[1:]]
    done = subprocess.run(command)
    server.shutdown()
sys.exit(done.returncode)
