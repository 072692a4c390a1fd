"""A Kafka broker on this machine without Docker, for development, tests and benchmarks.

One node has one copy of everything: it shows the protocol and survives a killed process, not a lost disk. It listens on the loopback
address alone, since it knows no passwords.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from eventlog.errors import ConfigurationError
from eventlog.kafka.local_jars import BrokerToolsMissing, exclusive, jars, java, kafka_version, missing_tools, resources
from eventlog.kafka.local_network import HOST, BrokerFailed, answers, free_port
from eventlog.kafka.local_process import ProcessIdentity
from eventlog.kafka.local_settings import SINGLE_NODE, new_cluster_id, properties_text, shared_settings

__all__ = [
    "SINGLE_NODE",
    "BrokerFailed",
    "BrokerStatus",
    "BrokerToolsMissing",
    "LocalBroker",
    "free_port",
    "missing_tools",
    "shared_settings",
]

_PORT_ATTEMPTS = 3  # another process may take a port between our look and the broker's start
# A clean stop of an idle broker takes 0.5 s; 15 s is for many open logs on a machine under load.
_STOP_SECONDS = 15.0
_FAST_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@dataclass(frozen=True)
class BrokerStatus:
    """What is known of a local broker without asking it. A paused broker counts as running."""

    running: bool
    pid: int | None
    port: int | None  # kept while the broker is down: it comes back on the same one
    bootstrap: str | None  # what a client is given
    version: str
    data: Path
    since: datetime | None


@dataclass(frozen=True)
class _State:
    """The file broker.json: which ports this directory's broker has, and which process it is while it runs."""

    port: int
    controller_port: int
    version: str
    process: ProcessIdentity | None = None
    since: datetime | None = None


class LocalBroker:
    """One Kafka broker in one directory. It outlives the process that starts it; any process may find and stop it by its directory.

    Args:
        directory: Settings, data and logs; made when the broker first starts. A comma in its path is refused (Kafka's separator).
        port: 0 takes a free one. Either way a directory keeps its port from one start to the next.
        config: Broker settings over those of server.properties and of one node.
        heap: The JVM's largest heap, as after -Xmx. With 512m a process has about 350 MB.
        fast_start: Leaves out the JVM's optimising compiler. On two busy cores: up in 4 s instead of 7, and half the processor time over
            the first 2000 transactions. A warm broker is slower for it, so not for benchmarks.
        cluster_id: For a data directory that joins others in a cluster (22 characters); its own otherwise.
    """

    def __init__(
        self,
        *,
        directory: Path | str = ".broker",
        port: int = 0,
        config: Mapping[str, str] | None = None,
        heap: str = "512m",
        fast_start: bool = False,
        cluster_id: str | None = None,
    ) -> None:
        self.directory = Path(directory).absolute()
        self._port = port
        self._config = dict(config or {})
        self._heap = heap
        self._fast_start = fast_start
        self._cluster_id = cluster_id

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """Kafka's own log. What the JVM prints is in output.log beside it."""
        return self.directory / "server.log"

    @property
    def bootstrap(self) -> str:
        """The address for clients, known from the first start on, also while the broker is down."""
        bootstrap = self.status().bootstrap
        if bootstrap is None:
            raise ConfigurationError(f"the broker in {self.directory} was never started", hint="Start it: its port is chosen then.")
        return bootstrap

    def __enter__(self) -> LocalBroker:
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.down()

    def up(self, *, timeout: float = 60.0) -> BrokerStatus:
        """Start the broker, unless it runs, and return when it answers.

        Args:
            timeout: Seconds from the broker's start to its first answer. The jars' arrival on the very first start is not counted.

        Raises:
            BrokerToolsMissing: Java, or Maven while its jars are not cached yet, is not installed.
            BrokerFailed: It ended or did not answer in time; nothing is left running that this call started.
            ConfigurationError: It runs already, with another port or other settings.
        """
        if "," in str(self.directory):
            raise ConfigurationError(f"a broker's directory cannot have a comma in its path: {self.directory}")
        self.directory.mkdir(parents=True, exist_ok=True)
        with exclusive(self.directory / "lock"):
            state = self._load()
            if state is not None and state.process is not None and state.process.is_alive():
                if self._port not in (0, state.port) or self._settings_text(state) != self._settings_path.read_text(encoding="ascii"):
                    raise ConfigurationError(
                        f"the broker in {self.directory} runs on port {state.port} with other settings",
                        hint="Stop it first, or use another directory.",
                    )
                state.process.send(signal.SIGCONT)
                self._wait_for_answer(state, timeout)
                return self.status()
            for attempt in range(1, _PORT_ATTEMPTS + 1):
                # The first attempt is for the ports of the time before, so that clients find the broker where it was.
                state = self._choose_ports(state if attempt == 1 else None)
                try:
                    self._start(state, timeout)
                except BrokerFailed as error:
                    if self._port != 0 or attempt == _PORT_ATTEMPTS or "Address already in use" not in str(error):
                        raise
                else:
                    break
            return self.status()

    def down(self) -> None:
        """Stop the broker and return when its process has ended: asked first, after 15 s made to. Does nothing when it is down."""
        if (process := self._process()) is not None:
            # A paused process takes the first signal only when it is woken.
            if process.send(signal.SIGTERM) and process.send(signal.SIGCONT) and not process.wait(_STOP_SECONDS):
                process.send(signal.SIGKILL)
            self._await_end(process)

    def kill(self) -> None:
        """End the broker at once, as a crash would, and return when its process has ended. Does nothing when it is down."""
        if (process := self._process()) is not None:
            process.send(signal.SIGKILL)
            self._await_end(process)

    def restart(self, *, timeout: float = 60.0) -> BrokerStatus:
        """Stop, then start with the same data on the same port."""
        self.down()
        return self.up(timeout=timeout)

    def pause(self) -> None:
        """Freeze the broker: its connections stay open and unanswered. Raises BrokerFailed when it does not run."""
        self._signal_running(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused broker go on. Raises BrokerFailed when it does not run."""
        self._signal_running(signal.SIGCONT)

    def status(self) -> BrokerStatus:
        """What is known of the broker; asks the operating system, not the broker."""
        state = self._load()
        if state is None:
            return BrokerStatus(False, None, None, None, kafka_version(), self.data, None)
        process = state.process if state.process is not None and state.process.is_alive() else None
        return BrokerStatus(
            running=process is not None,
            pid=None if process is None else process.pid,
            port=state.port,
            bootstrap=f"{HOST}:{state.port}",
            version=state.version,
            data=self.data,
            since=None if process is None else state.since,
        )

    # -- starting --------------------------------------------------------------------------------------------------

    def _choose_ports(self, before: _State | None) -> _State:
        port = self._port or (before.port if before is not None else free_port())
        controller_port = before.controller_port if before is not None and before.controller_port != port else free_port(avoid=port)
        return _State(port, controller_port, kafka_version())

    def _start(self, state: _State, timeout: float) -> None:
        launcher, classpath = java(), f"{jars()}/*"
        self._settings_path.write_text(self._settings_text(state), encoding="ascii")
        if not self.data.is_dir():
            self._format(launcher, classpath, state)
        scratch = self.directory / "tmp"  # compression libraries unpack themselves here and leave it behind when killed
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        self._save(state)
        command = [
            launcher,
            f"-Xmx{self._heap}",
            *(_FAST_START if self._fast_start else ()),
            "-XX:+ExitOnOutOfMemoryError",
            f"-XX:ErrorFile={self.directory / 'crash.log'}",
            "-Djava.awt.headless=true",
            f"-Djava.io.tmpdir={scratch}",
            *self._logging_flags(),
            "-cp",
            classpath,
            "kafka.Kafka",
            str(self._settings_path),
        ]
        self.log.unlink(missing_ok=True)
        # Not subprocess: that warns when a process is meant to outlive its object. A session of its own keeps it from a terminal's Ctrl-C.
        pid = os.posix_spawn(
            launcher,
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self._output_path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        process = ProcessIdentity.of(pid)
        if process is None:
            raise self._failed("ended at once")
        running = dataclasses.replace(state, process=process, since=datetime.now(UTC))
        try:
            self._save(running)
            self._wait_for_answer(running, timeout)
        except BaseException:
            process.send(signal.SIGKILL)
            process.wait(_STOP_SECONDS)
            self._save(state)
            raise

    def _format(self, launcher: str, classpath: str, state: _State) -> None:
        """Prepare the data directory. It gets its name when it is complete, so that a killed start leaves nothing half-formatted."""
        fresh = self.directory / "data.incomplete"
        shutil.rmtree(fresh, ignore_errors=True)
        settings = self.directory / "format.properties"
        settings.write_text(properties_text({**self._settings(state), "log.dirs": str(fresh)}), encoding="ascii")
        tool = ["kafka.tools.StorageTool", "format", "-t", self._cluster_id or new_cluster_id(), "-c", str(settings)]
        run = subprocess.run(
            [launcher, *_FAST_START, *self._logging_flags(), "-cp", classpath, *tool],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            self._output_path.write_text(run.stdout, encoding="utf-8")
            raise self._failed("its data directory could not be formatted")
        settings.unlink()
        fresh.rename(self.data)

    def _logging_flags(self) -> list[str]:
        # The last one: no file in the system's temporary folder.
        return [f"-Dlog4j2.configurationFile={resources() / 'log4j2.properties'}", f"-Deventlog.broker.log={self.log}", "-XX:-UsePerfData"]

    def _wait_for_answer(self, state: _State, timeout: float) -> None:
        assert state.process is not None
        deadline = time.monotonic() + timeout
        while not answers(state.port):
            if not state.process.is_alive():
                raise self._failed("ended while it started")
            if time.monotonic() >= deadline:
                raise self._failed(f"did not answer within {timeout:.0f} s")
            time.sleep(0.05)

    def _failed(self, what: str) -> BrokerFailed:
        tail = "".join(_tail(path) for path in (self._output_path, self.log))
        if "UnsupportedClassVersionError" in tail:
            return BrokerFailed(
                HOST, f"the local broker {what}: {java()} is too old", hint="Install Java 17 or newer, or point JAVA_HOME to one."
            )
        return BrokerFailed(HOST, f"the local broker {what}; its log ends:\n{tail}", hint=f"The whole log is in {self.directory}.")

    # -- settings --------------------------------------------------------------------------------------------------

    @property
    def _settings_path(self) -> Path:
        return self.directory / "server.properties"

    @property
    def _output_path(self) -> Path:
        return self.directory / "output.log"

    def _settings(self, state: _State) -> dict[str, str]:
        return {
            **shared_settings(),
            **SINGLE_NODE,
            "node.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{state.port},CONTROLLER://{HOST}:{state.controller_port}",
            "controller.quorum.voters": f"1@{HOST}:{state.controller_port}",
            "log.dirs": str(self.data),
            **self._config,
        }

    def _settings_text(self, state: _State) -> str:
        return (
            "# Written at every start: server.properties of the package, then what differs on one node, then the caller's.\n"
            + properties_text(self._settings(state))
        )

    # -- the state file --------------------------------------------------------------------------------------------

    @property
    def _state_path(self) -> Path:
        return self.directory / "broker.json"

    def _load(self) -> _State | None:
        try:
            stored: dict[str, Any] = json.loads(self._state_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        process = ProcessIdentity(stored["pid"], stored["started"]) if stored["pid"] is not None else None
        since = datetime.fromisoformat(stored["since"]) if stored["since"] is not None else None
        return _State(stored["port"], stored["controller_port"], stored["version"], process, since)

    def _save(self, state: _State) -> None:
        stored = {
            "port": state.port,
            "controller_port": state.controller_port,
            "version": state.version,
            "pid": None if state.process is None else state.process.pid,
            "started": None if state.process is None else state.process.started,
            "since": None if state.since is None else state.since.isoformat(),
        }
        following = self._state_path.with_suffix(".new")
        following.write_text(json.dumps(stored), encoding="utf-8")
        following.replace(self._state_path)

    def _process(self) -> ProcessIdentity | None:
        state = self._load()
        return None if state is None else state.process

    def _signal_running(self, signal_number: signal.Signals) -> None:
        process = self._process()
        if process is None or not process.send(signal_number):
            raise BrokerFailed(str(self.directory), "no broker runs here", hint="Start it first.")

    def _await_end(self, process: ProcessIdentity) -> None:
        if not process.wait(_STOP_SECONDS):
            raise BrokerFailed(str(self.directory), f"process {process.pid} does not end", hint="Look at it with ps; its disk may hang.")
        state = self._load()
        if state is not None and state.process == process:
            self._save(dataclasses.replace(state, process=None, since=None))


def _tail(path: Path, size: int = 4000) -> str:
    """The end of a log, or nothing when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
