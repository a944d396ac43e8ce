"""What the pages read, one module for each. Rows come out ready to be shown: words, not codes."""
