"""What every command uses: output, input and exit codes."""
