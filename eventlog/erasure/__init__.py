"""Erasure: payloads that are gone for good, from every place that the system keeps them in, with a certificate that says so."""
