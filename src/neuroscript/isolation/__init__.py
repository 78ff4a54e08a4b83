"""Isolated tools: worker processes that run functions of tools, and what confines them."""
