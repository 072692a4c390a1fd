"""Providers of the keys that wrap data keys: one small protocol, and where a provider is found by what a store remembers of it."""

from eventlog.privacy.providers.provider import KeyProvider, NoKeys, provider_of

__all__ = ["KeyProvider", "NoKeys", "provider_of"]
