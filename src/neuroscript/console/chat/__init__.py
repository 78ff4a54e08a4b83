"""The chat area: a conversation of one browser with a model, with its tool calls and their approvals."""
