"""Roles, and what all fleets have in common."""
