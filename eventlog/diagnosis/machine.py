"""The machine that a store is on: open files, and the file system beneath its files."""

from __future__ import annotations

import resource
from pathlib import Path

from eventlog.diagnosis.check import Check, State

LEAST_OPEN_FILES = 512  # an embedded store has 15 or so, one on Kafka 10 and 5 a partition; the application has its own
MOUNTS = Path("/proc/self/mountinfo")  # Linux
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ncpfs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse"}


def open_files() -> Check:
    """How many files this process may have open. A store that runs out of them fails in the middle of a write."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY or limit >= LEAST_OPEN_FILES:
        return Check("open files", State.OK, "no limit" if limit == resource.RLIM_INFINITY else f"{limit} at most")
    advice = f"Allow more where the application is started: `ulimit -n {4 * LEAST_OPEN_FILES}`, or LimitNOFILE of its service."
    return Check("open files", State.WARN, f"{limit} at most; {'no' if most == resource.RLIM_INFINITY else most} may be asked for", advice)


def file_system(directory: Path) -> Check:
    """Whether the directory is on a disk of this machine: SQLite's and DuckDB's locks hold nothing together across a network."""
    kind = file_system_of(directory)
    if kind is None:
        return Check("file system", State.OK, "not known on this platform")
    if kind in NETWORK:
        advice = "Move the directory to a disk of this machine. Processes of several machines share a store on Kafka, not through files."
        return Check("file system", State.FAIL, f"{directory} is on {kind}, a network's file system: locks do not hold there", advice)
    return Check("file system", State.OK, kind)


def file_system_of(directory: Path) -> str | None:
    """The kind of file system that a directory lies on; None where the platform does not say."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    path = directory.resolve()
    found: tuple[int, str | None] = (-1, None)
    for line in lines:
        mount, _, rest = line.partition(" - ")
        point = Path(mount.split(" ")[4].replace("\\040", " "))
        if path.is_relative_to(point) and len(point.parts) >= found[0]:  # the last of those at one point is the one on top
            found = len(point.parts), rest.split(" ")[0]
    return found[1]
