"""Which machine, which versions, and how busy it was."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

_PACKAGES = ("kafka-python", "fastavro", "duckdb", "pydantic", "orjson", "zstandard", "langgraph-checkpoint", "langgraph-checkpoint-sqlite")
_MEMORY_DISKS = frozenset({"tmpfs", "ramfs"})


def describe(directory: Path) -> dict[str, Any]:
    """The machine as it is now. `directory`: on the disk that is measured."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "filesystem": filesystem(directory),
        "flush_ms": round(_flush_milliseconds(directory), 3),
        "load_before": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Of everything whose speed enters a figure."""
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "eventlog": _commit()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def in_memory(directory: Path) -> bool:
    """Whether a directory is no disk at all: then a flush costs nothing and the figures of durable writes mean nothing."""
    return filesystem(directory) in _MEMORY_DISKS


def filesystem(directory: Path) -> str:
    """The kind of file system that a directory is on."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    path, best = directory.resolve(), ("", "unknown")
    for line in mounts.read_text().splitlines():
        _, mounted, kind, *_ = line.split(" ")
        if path.is_relative_to(mounted) and len(mounted) >= len(best[0]):
            best = (mounted, kind)
    return best[1]


def _flush_milliseconds(directory: Path) -> float:
    """A 4 KB append and its fdatasync, median of 50."""
    path = directory / "flush"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    taken = []
    try:
        for _ in range(50):
            started = time.perf_counter()
            os.write(handle, bytes(4096))
            os.fdatasync(handle)
            taken.append(time.perf_counter() - started)
    finally:
        os.close(handle)
        path.unlink()
    return 1000 * median(taken)


def _cpu() -> str:
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text().splitlines() if cpus.exists() else []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
    return named or platform.processor() or platform.machine()


def _commit() -> str:
    def git(*arguments: str) -> str:
        run = subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        return run.stdout.strip() if run.returncode == 0 else ""

    commit = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--", "../eventlog", "../projections")
    return (commit or "unknown") + ("+changes" if changed else "")
