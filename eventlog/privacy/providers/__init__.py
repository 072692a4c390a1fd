"""Providers of the keys that wrap data keys: one small protocol, and where a provider is found by what a store remembers of it."""

from eventlog.privacy.providers.environment import EnvironmentKey
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.privacy.providers.pkcs11 import Pkcs11Keys
from eventlog.privacy.providers.provider import KeyProvider, NoKeys, provider_of

__all__ = ["EnvironmentKey", "KeyFile", "KeyProvider", "NoKeys", "Pkcs11Keys", "provider_of"]
