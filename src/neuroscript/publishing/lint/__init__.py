"""Static checks of a toolset: its sources are parsed and never imported."""
