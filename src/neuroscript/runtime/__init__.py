"""What a tool sees, what a host provides, and what redacts secrets between the two."""
