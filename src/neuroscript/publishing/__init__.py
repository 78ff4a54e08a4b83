"""What publishers of toolsets begin with: a complete distribution, written from a template."""
