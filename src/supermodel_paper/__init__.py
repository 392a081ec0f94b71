"""Every experiment of the paper, as functions that return numbers and figures; `reproduce.main` runs them all."""
