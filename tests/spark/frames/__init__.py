"""Of what every transform stands on."""
