"""What stands between a sandbox and the world: a proxy that allows hosts, a gateway with a key."""
