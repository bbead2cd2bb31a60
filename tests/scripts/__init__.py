"""Of what sets up this project."""
