"""Models written in a TOML file: nothing in it is run as code."""
