"""Where the local broker's program comes from: Java, and Kafka's jars, resolved by Maven once and kept in a cache."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from platformdirs import user_cache_path

from eventlog.errors import ConfigurationError, Unavailable

_POM_NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"
_INSTALL = {
    "java": "Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)",
    "mvn": "Apache Maven (Debian: apt-get install maven; macOS: brew install maven)",
}
# 45 jars, 45 MB: 6 s on a fast line. Ten minutes lets a slow one finish.
_RESOLVE_SECONDS = 600.0


class BrokerToolsMissing(ConfigurationError):
    """A program that the local broker needs is not installed; `missing` names each."""

    def __init__(self, missing: tuple[str, ...]) -> None:
        super().__init__(
            f"the local broker needs {' and '.join(missing)}, not found here",
            hint=f"Install {' and '.join(_INSTALL[tool] for tool in missing)}, or name a running broker by its address.",
        )
        self.missing = missing


def resources() -> Path:
    """The folder with pom.xml, server.properties and log4j2.properties: in the installed package, or in a checkout."""
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "_broker", package.parent / "compose" / "broker")
    for folder in candidates:
        if (folder / "pom.xml").is_file():
            return folder
    raise ConfigurationError(
        f"the local broker's files are in none of {', '.join(map(str, candidates))}", hint="Install the package again."
    )


def kafka_version() -> str:
    """The version of Kafka that the local broker runs."""
    root = ElementTree.parse(resources() / "pom.xml").getroot()
    version = root.findtext(f"{_POM_NAMESPACE}properties/{_POM_NAMESPACE}kafka.version")
    if not version:
        raise ConfigurationError(f"{resources() / 'pom.xml'} names no kafka.version")
    return version


def missing_tools() -> tuple[str, ...]:
    """What would have to be installed before a local broker can run here: of `java` and `mvn`, those that are missing and needed."""
    needed = [("java", _find_java())]
    if not _jar_folder().is_dir():
        needed.append(("mvn", shutil.which("mvn")))
    return tuple(tool for tool, found in needed if found is None)


def java() -> str:
    """The Java launcher: that of JAVA_HOME, else the first on the path. Raises BrokerToolsMissing."""
    found = _find_java()
    if found is None:
        raise BrokerToolsMissing(missing_tools())
    return found


def jars() -> Path:
    """The folder of Kafka's jars, resolved with Maven when the cache has none.

    Callers in other processes wait for the first. A resolution that is killed leaves the cache as it was: the jars are gathered in a
    folder of their own, which gets its name when it is complete. Raises BrokerToolsMissing, or Unavailable when Maven fails.
    """
    folder = _jar_folder()
    if folder.is_dir():
        return folder
    if missing := missing_tools():
        raise BrokerToolsMissing(missing)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(folder.parent / "lock"):
        if not folder.is_dir():
            for abandoned in folder.parent.glob("incomplete-*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            gathered = Path(tempfile.mkdtemp(prefix="incomplete-", dir=folder.parent))
            try:
                _resolve(gathered)
                gathered.rename(folder)
            finally:
                shutil.rmtree(gathered, ignore_errors=True)
    return folder


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file: one holder among all processes and threads. Ends with the process, however that ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _find_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return (shutil.which("java", path=str(Path(home) / "bin")) if home else None) or shutil.which("java")


def _jar_folder() -> Path:
    # The digest: another pom.xml for the same Kafka is another set of jars.
    digest = hashlib.sha256((resources() / "pom.xml").read_bytes()).hexdigest()[:8]
    return user_cache_path("eventlog-checkpoints", appauthor=False) / f"kafka-{kafka_version()}-{digest}"


def _resolve(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerToolsMissing(("mvn",))
    command = [maven, "--quiet", "--batch-mode", "--strict-checksums", "--file", str(resources() / "pom.xml")]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_RESOLVE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable("Maven", f"the jars of Kafka {kafka_version()} did not arrive in {_RESOLVE_SECONDS:.0f} s") from error
    if run.returncode != 0 or not any(folder.glob("kafka_*.jar")):
        raise Unavailable(
            "Maven",
            f"could not resolve the jars of Kafka {kafka_version()}:\n{run.stdout[-2000:]}",
            hint="Maven says why above; usually its repository cannot be reached from here.",
        )
