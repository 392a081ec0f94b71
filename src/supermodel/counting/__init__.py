"""How many? The number of components as a question of its own."""
