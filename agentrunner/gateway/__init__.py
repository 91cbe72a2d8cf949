"""Between a sandbox and the world: a proxy that allows listed hosts, a gateway that holds the
key."""
