"""The area of the policy: what it says in words, what it would decide, and how policies differ."""
