"""What stands between a box and the world: an allow-listing proxy, and a gateway with the key."""
