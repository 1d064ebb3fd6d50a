"""Commands, a module each; ``cli`` names them."""
