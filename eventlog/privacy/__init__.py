"""What keeps payloads private: envelopes, data keys, and the providers of the keys that wrap them."""
