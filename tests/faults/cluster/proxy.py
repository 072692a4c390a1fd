"""A proxy in front of one broker that knows Kafka's framing, so that one certain request or answer can be lost, held or late.

A request is a length, then api key, api version and correlation id; an answer is a length, then the correlation id of its request
(https://kafka.apache.org/protocol.html#protocol_messages). Nothing else of the protocol is read.

Loss is as TCP has it. A frame alone cannot be lost: either its connection breaks (`Fate.CUT`), or it and all that follows on its connection
in that direction waits (`Fate.STALL`) until `release()`, and then arrives, even when its client has hung up meanwhile: the kernel of a
machine that is cut off goes on to send what was written before the close. That is how a request comes to hit a later transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from eventlog.kafka.local import free_port
from tests.faults.cluster.rules import Fate, Rule, Way

T = TypeVar("T")

HOST = "127.0.0.1"
_LARGEST_FRAME = 64 << 20


class ProxyLoop:
    """The thread that runs proxies. `close()` ends it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="kafka-proxy", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the thread and returns its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class KafkaProxy:
    """A port of the loopback address that leads to a broker's. Its methods may be called from any thread.

    Arguments:
        broker_port: where the broker listens; it may be down, then connections are refused by being reset.
        port: 0 takes a free one.
    """

    def __init__(self, runner: ProxyLoop, broker_port: int, port: int = 0) -> None:
        self.port = port or free_port()
        self.seen: Counter[tuple[Way, int]] = Counter()  # frames that came, whatever became of them
        self._runner = runner
        self._broker_port = broker_port
        self._rules: list[Rule] = []
        self._links: set[_Link] = set()
        self._late: list[bytes] = []
        self._refusing = False
        self._delay = 0.0
        self._open = dict.fromkeys(Way, True)
        self._server = runner.run(self._listen())

    # -- faults ---------------------------------------------------------------------------------------------------

    def add(self, rule: Rule) -> Rule:
        """Lays a rule down; the first that strikes decides."""
        self._do(lambda: self._rules.append(rule))
        return rule

    def cut(self) -> None:
        """Resets every connection and, until `restore()`, every new one."""
        self._do(lambda: setattr(self, "_refusing", True))
        self.reset()

    def reset(self) -> None:
        """Resets every connection, once."""
        self._do(lambda: list(map(_Link.reset, list(self._links))))

    def stall(self, *ways: Way) -> None:
        """Lets nothing through in these directions until `restore()`: connections are made, but what is sent waits."""
        self._do(lambda: self._open.update(dict.fromkeys(ways, False)))

    def delay(self, seconds: float) -> None:
        """Adds so much to each way, without limiting how much passes."""
        self._do(lambda: setattr(self, "_delay", seconds))

    def release(self) -> None:
        """Lets go what rules have made wait; returns when what was late has been answered by the broker."""
        self._runner.run(self.released())

    async def released(self) -> None:
        """`release()` for a rule's `then`."""
        for link in self._links:
            link.release()
        late, self._late = self._late, []
        for frame in late:
            await self._deliver(frame)

    def restore(self) -> None:
        """Ends every fault: no rule, no delay, and what waited arrives."""

        def undo() -> None:
            self._rules.clear()
            self._refusing, self._delay = False, 0.0
            self._open.update(dict.fromkeys(Way, True))

        self._do(undo)
        self.release()

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._links)

    def close(self) -> None:
        self._runner.run(self._end())

    # -- inside: everything below runs in the loop's thread -------------------------------------------------------

    def rule_for(self, way: Way, api: int) -> Rule | None:
        self.seen[way, api] += 1
        return next((rule for rule in self._rules if rule.strikes(way, api)), None)

    def is_open(self, way: Way) -> bool:
        return self._open[way]

    def due(self) -> float:
        return self._runner.loop.time() + self._delay

    def keep(self, frame: bytes) -> None:
        self._late.append(frame)

    def _do(self, change: Callable[[], object]) -> None:
        async def changed() -> None:
            change()
            for link in list(self._links):
                link.look()

        self._runner.run(changed())

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, HOST, self.port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._refusing:
                raise ConnectionRefusedError
            broker = await asyncio.open_connection(HOST, self._broker_port)
        except OSError:
            _reset(writer)
            return
        link = _Link(self, (reader, writer), broker)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    async def _deliver(self, frame: bytes) -> None:
        """Brings a late request to the broker by a connection of its own. Nobody waits for its answer any more."""
        reader, writer = await asyncio.open_connection(HOST, self._broker_port)
        try:
            writer.write(frame)
            await _read_frame(reader)
        finally:
            _reset(writer)

    async def _end(self) -> None:
        self._server.close()
        for link in list(self._links):
            link.reset()
        while self._links:
            await asyncio.sleep(0.005)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    """One client's connection, and the one to the broker that belongs to it."""

    def __init__(self, proxy: KafkaProxy, client: Streams, broker: Streams) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        self._asked: dict[int, int] = {}  # correlation id -> api key
        self._stalled: set[Way] = set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until the client has closed and what it sent has arrived, or until the broker has closed."""
        requests = asyncio.create_task(self._carry(Way.REQUESTS, self._client[0], self._broker[1]))
        answers = asyncio.create_task(self._carry(Way.ANSWERS, self._broker[0], self._client[1]))
        await asyncio.wait((requests, answers), return_when=asyncio.FIRST_COMPLETED)
        self.reset()
        for task in (requests, answers):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def reset(self) -> None:
        """Breaks both connections, whatever is on its way."""
        for _, writer in (self._client, self._broker):
            _reset(writer)

    def release(self) -> None:
        self._stalled.clear()
        self.look()

    def look(self) -> None:
        """Something has changed that may let a frame go on."""
        self._changed.set()

    async def _carry(self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads on while earlier frames are still on their way: a delay costs no throughput, and who hangs up takes nothing back."""
        under_way: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()
        sending = asyncio.create_task(self._send(way, under_way, writer))
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    frame = await _read_frame(reader)
                    under_way.put_nowait((self._proxy.due(), frame))
            under_way.put_nowait(None)
            await sending
        finally:
            sending.cancel()

    async def _send(self, way: Way, under_way: asyncio.Queue[tuple[float, bytes] | None], writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while (item := await under_way.get()) is not None:
                due, frame = item
                if await self._passes(way, frame, due):
                    writer.write(frame)
                    await writer.drain()

    async def _passes(self, way: Way, frame: bytes, due: float) -> bool:
        """Whether the frame goes on, once it may."""
        rule = self._proxy.rule_for(way, self._api(way, frame))
        if rule is not None:
            if rule.then is not None:
                await rule.then()
            if rule.fate in (Fate.CUT, Fate.LATE):
                if rule.fate is Fate.LATE:
                    self._proxy.keep(frame)
                self.reset()
                return False
            if rule.fate is Fate.STALL:
                self._stalled.add(way)
        while way in self._stalled or not self._proxy.is_open(way):
            self._changed.clear()
            await self._changed.wait()
        await asyncio.sleep(due - asyncio.get_running_loop().time())
        return True

    def _api(self, way: Way, frame: bytes) -> int:
        if way is Way.REQUESTS:
            api, _, correlation = struct.unpack_from(">hhi", frame, 4)
            self._asked[correlation] = api
            return int(api)
        return self._asked.pop(struct.unpack_from(">i", frame, 4)[0])


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes a connection so that the other side sees a reset, not an end."""
    connection: socket.socket = writer.get_extra_info("socket")
    if connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(4)
    size = int.from_bytes(head, "big")
    if size > _LARGEST_FRAME:
        raise OSError(f"a frame of {size} bytes is not Kafka's")
    return head + await reader.readexactly(size)
