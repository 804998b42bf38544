"""Pull requests and issues of a GitHub repository: its REST API, a local mirror of it, and whole threads."""
