"""Information flow: the labels of what calls read, and where these labels may not go."""
