"""The border: what a user passes is checked here, once, and messages name the argument."""
