"""Between a sandbox and the world: a proxy that allows hosts, a gateway that holds the key."""
