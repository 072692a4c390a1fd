"""The tests' proxy loses, holds and delays what it is told to, and nothing else."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.faults.cluster.proxy import HOST, KafkaProxy, ProxyLoop
from tests.faults.cluster.rules import Api, Fate, Rule, Way
from tests.waiting import eventually

Connect = Callable[[], "Client"]


class Broker:
    """Answers every request with its correlation id, and remembers what came: (api, correlation id)."""

    def __init__(self) -> None:
        self.received: list[tuple[int, int]] = []
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while (head := connection.recv(4, socket.MSG_WAITALL)) and len(head) == 4:
                api, _, correlation = struct.unpack(">hhi", connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)[:8])
                self.received.append((api, correlation))
                with contextlib.suppress(OSError):  # who asked has hung up; what else it sent counts all the same
                    connection.sendall(struct.pack(">ii", 4, correlation))
        except OSError:
            return
        finally:
            connection.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # closed before
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for connection in self._connections:
            with contextlib.suppress(OSError):  # its client has hung up
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()


class Client:
    def __init__(self, proxy: KafkaProxy) -> None:
        self.connection = socket.create_connection((HOST, proxy.port), timeout=10)

    def send(self, api: int, correlation: int) -> None:
        self.connection.sendall(struct.pack(">ihhi", 8, api, 9, correlation))

    def answer(self) -> int:
        """The next correlation id. Raises `ConnectionResetError` when there will be none."""
        frame = self.connection.recv(8, socket.MSG_WAITALL)
        if len(frame) < 8:
            raise ConnectionResetError
        return int(struct.unpack(">ii", frame)[1])

    def ask(self, api: int, correlation: int) -> int:
        self.send(api, correlation)
        return self.answer()

    def silent(self, seconds: float = 0.2) -> bool:
        self.connection.settimeout(seconds)
        try:
            self.connection.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.connection.settimeout(10)
        return False


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.close()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[KafkaProxy]:
    loop = ProxyLoop()
    made = KafkaProxy(loop, broker.port)
    yield made
    made.close()
    loop.close()


@pytest.fixture
def connect(proxy: KafkaProxy) -> Iterator[Connect]:
    made: list[Client] = []

    def one_more() -> Client:
        made.append(Client(proxy))
        return made[-1]

    yield one_more
    for client in made:
        client.connection.close()


@pytest.fixture
def client(connect: Connect) -> Client:
    return connect()


def test_requests_and_answers_pass_and_are_counted_by_api(broker: Broker, proxy: KafkaProxy, client: Client) -> None:
    assert [client.ask(Api.PRODUCE, 7), client.ask(Api.END_TXN, 8)] == [7, 8]
    assert broker.received == [(Api.PRODUCE, 7), (Api.END_TXN, 8)]
    assert proxy.seen == {(way, api): 1 for way in Way for api in (Api.PRODUCE, Api.END_TXN)}


def test_a_lost_request_never_reaches_the_broker_and_its_connection_breaks(
    connect: Connect, broker: Broker, proxy: KafkaProxy, client: Client
) -> None:
    rule = proxy.add(Rule(Way.REQUESTS, Api.END_TXN, Fate.CUT, skip=1))
    assert client.ask(Api.END_TXN, 1) == 1
    assert client.ask(Api.PRODUCE, 2) == 2
    with pytest.raises(ConnectionResetError):
        client.ask(Api.END_TXN, 3)
    assert broker.received == [(Api.END_TXN, 1), (Api.PRODUCE, 2)]
    assert rule.hits == 1
    assert connect().ask(Api.END_TXN, 4) == 4, "one was to be lost"


def test_a_lost_answer_is_lost_after_the_broker_has_done_it(broker: Broker, proxy: KafkaProxy, client: Client) -> None:
    proxy.add(Rule(Way.ANSWERS, Api.END_TXN, Fate.CUT))
    with pytest.raises(ConnectionResetError):
        client.ask(Api.END_TXN, 1)
    assert broker.received == [(Api.END_TXN, 1)]


def test_what_is_stalled_holds_up_its_own_connection_until_it_is_released(
    connect: Connect, broker: Broker, proxy: KafkaProxy, client: Client
) -> None:
    proxy.add(Rule(Way.ANSWERS, Api.END_TXN, Fate.STALL))
    client.send(Api.END_TXN, 1)
    client.send(Api.PRODUCE, 2)
    other = connect()
    assert other.ask(Api.END_TXN, 3) == 3
    assert client.silent()
    eventually(lambda: [each for each in broker.received if each[1] != 3] == [(Api.END_TXN, 1), (Api.PRODUCE, 2)])
    proxy.release()
    assert [client.answer(), client.answer()] == [1, 2]


def test_a_stalled_request_arrives_after_its_client_has_hung_up(
    connect: Connect, broker: Broker, proxy: KafkaProxy, client: Client
) -> None:
    proxy.add(Rule(Way.REQUESTS, Api.END_TXN, Fate.STALL))
    client.send(Api.END_TXN, 1)
    client.send(Api.PRODUCE, 2)
    eventually(lambda: proxy.seen[Way.REQUESTS, Api.END_TXN])
    client.connection.close()
    assert connect().ask(Api.END_TXN, 3) == 3
    proxy.release()
    eventually(lambda: broker.received == [(Api.END_TXN, 3), (Api.END_TXN, 1), (Api.PRODUCE, 2)])
    eventually(lambda: proxy.connections == 1)


def test_a_late_request_may_be_sent_again_before_it_arrives(connect: Connect, broker: Broker, proxy: KafkaProxy, client: Client) -> None:
    proxy.add(Rule(Way.REQUESTS, Api.END_TXN, Fate.LATE))
    with pytest.raises(ConnectionResetError):
        client.ask(Api.END_TXN, 1)
    assert connect().ask(Api.END_TXN, 2) == 2
    proxy.release()
    assert broker.received == [(Api.END_TXN, 2), (Api.END_TXN, 1)]


def test_a_rule_can_do_something_while_the_frame_waits(connect: Connect, broker: Broker, proxy: KafkaProxy, client: Client) -> None:
    proxy.add(Rule(Way.REQUESTS, Api.END_TXN, Fate.LATE))
    proxy.add(Rule(Way.REQUESTS, Api.PRODUCE, Fate.PASS, then=proxy.released))
    with pytest.raises(ConnectionResetError):
        client.ask(Api.END_TXN, 1)
    assert connect().ask(Api.PRODUCE, 2) == 2
    assert broker.received == [(Api.END_TXN, 1), (Api.PRODUCE, 2)]


@pytest.mark.parametrize(("way", "arrives"), [(Way.REQUESTS, False), (Way.ANSWERS, True)])
def test_one_way_can_be_stopped(broker: Broker, proxy: KafkaProxy, client: Client, way: Way, arrives: bool) -> None:
    proxy.stall(way)
    client.send(Api.FETCH, 1)
    if arrives:
        eventually(lambda: broker.received == [(Api.FETCH, 1)])
    assert client.silent()
    assert (broker.received == [(Api.FETCH, 1)]) is arrives
    proxy.restore()
    assert client.answer() == 1


def test_while_cut_off_nothing_gets_through_and_afterwards_everything(connect: Connect, proxy: KafkaProxy, client: Client) -> None:
    assert client.ask(Api.FETCH, 1) == 1
    proxy.cut()
    with pytest.raises(OSError):
        client.ask(Api.FETCH, 2)
    with pytest.raises(OSError):
        connect().ask(Api.FETCH, 3)
    proxy.restore()
    assert connect().ask(Api.FETCH, 4) == 4


def test_a_delay_applies_to_each_way_and_not_to_each_frame(proxy: KafkaProxy, client: Client) -> None:
    proxy.delay(0.1)
    started = time.monotonic()
    for correlation in range(10):
        client.send(Api.FETCH, correlation)
    assert [client.answer() for _ in range(10)] == list(range(10))
    assert 0.2 <= time.monotonic() - started < 1.0


def test_a_broker_that_is_down_looks_down(connect: Connect, proxy: KafkaProxy, broker: Broker, client: Client) -> None:
    assert client.ask(Api.FETCH, 1) == 1
    broker.close()
    with pytest.raises(OSError):
        connect().ask(Api.FETCH, 2)
    client.connection.close()
    eventually(lambda: proxy.connections == 0)


def test_a_share_of_frames_is_chosen_by_the_seed(connect: Connect, proxy: KafkaProxy) -> None:
    rule = proxy.add(Rule(Way.REQUESTS, None, Fate.CUT, times=None, chance=0.2))
    lost = 0
    for correlation in range(50):
        try:
            connect().ask(Api.FETCH, correlation)
        except ConnectionResetError:
            lost += 1
    assert lost == rule.hits
    assert 3 <= lost <= 20
