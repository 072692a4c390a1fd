"""Backup and restore: a store copied while it is written to, made anew in an empty place, and drills that show that this would work."""
