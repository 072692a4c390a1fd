"""What keeps payloads private and accesses accountable: envelopes and data keys; principals, and the record of who did what."""
