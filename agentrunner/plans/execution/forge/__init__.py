"""Pull and merge requests: which server, what they say, and that each is opened once."""
