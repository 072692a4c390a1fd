"""The checks of `eventlog doctor` that are not about one file alone: the machine, an open store, what it keeps beside its log."""
