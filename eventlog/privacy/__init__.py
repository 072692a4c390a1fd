"""Who may do what, and what becomes known of it."""
