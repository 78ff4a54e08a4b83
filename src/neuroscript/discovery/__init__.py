"""Discovery and loading of plugins: installed distributions, files and packages."""
