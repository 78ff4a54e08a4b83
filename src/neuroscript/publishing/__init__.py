"""Tools for publishers of toolsets: a scaffold, static checks, and a build hook."""
