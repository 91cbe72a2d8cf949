"""Pull and merge requests: the server, the text, and opening each only once."""
