"""Tool specs: declared by hand or derived from a function, and binding of call arguments to them."""
