"""Algorithm 1 and what it leaves behind; sees objectives only through the protocol."""
