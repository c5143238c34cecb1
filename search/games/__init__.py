"""The games: one file is one game, found by its name; there is no list to edit."""
