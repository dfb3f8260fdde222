"""The ZeroMQ transport: who hears what, and what a broken connection looks like."""

from __future__ import annotations

import socket
import threading
import time

import numpy as np
import pytest
import zmq
from distributed import toy

from fluidx.distributed import ClusterError
from fluidx.distributed.config import RpcConfig
from fluidx.distributed.memory import keep_buffers
from fluidx.distributed.transport import Arrived, Lost
from fluidx.distributed.zmq_transport import (
    LISTEN_FDS,
    UNIX_SOCKETS,
    ZmqServer,
    ZmqTrainer,
)

CONFIG = RpcConfig(deadline=5.0)


@pytest.fixture(params=["never", "always"], ids=["tcp", "unix"])
def pair(request, ports, monkeypatch):
    """A server and a trainer that is connected to it."""
    monkeypatch.setenv(UNIX_SOCKETS, request.param)
    (endpoint,) = ports(1)
    server, trainer = ZmqServer(endpoint, CONFIG), ZmqTrainer(CONFIG)
    trainer.connect(endpoint)
    trainer.connect(endpoint)  # the second does nothing
    yield server, trainer, endpoint
    trainer.close(0)
    server.close(0)


def wait_for(transport, kind, seconds=5.0):
    """Events up to the first of this kind."""
    events = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        events += transport.poll(0.1)
        if any(isinstance(e, kind) for e in events):
            return events
    pytest.fail(f"no {kind.__name__} in {seconds} s: {events}")


def test_messages_go_both_ways(pair):
    server, trainer, endpoint = pair
    large = np.arange(100000, dtype="u1")
    trainer.send(endpoint, [b"head", large])
    (event,) = wait_for(server, Arrived)
    assert bytes(event.frames[0]) == b"head"
    np.testing.assert_array_equal(np.frombuffer(event.frames[1], "u1"), large)
    server.send(event.peer, [b"answer"])
    (event,) = wait_for(trainer, Arrived)
    assert (event.peer, bytes(event.frames[0])) == (endpoint, b"answer")
    assert trainer.poll(0.0) == []


def test_a_trainer_that_leaves_is_told_after_its_last_message(pair):
    server, trainer, endpoint = pair
    trainer.send(endpoint, [b"first"])
    trainer.send(endpoint, [b"last"])
    trainer.close()
    events = wait_for(server, Lost)
    assert [type(e) for e in events] == [Arrived, Arrived, Lost]
    assert events[0].peer == events[1].peer == events[2].peer
    with pytest.raises(ClusterError, match="gone"):
        server.send(events[0].peer, [b"too late"])


def test_a_server_that_leaves_is_told_after_its_last_message(pair):
    server, trainer, endpoint = pair
    trainer.send(endpoint, [b"hello"])
    (event,) = wait_for(server, Arrived)
    server.send(event.peer, [b"bye"])
    server.close()
    events = wait_for(trainer, Lost)
    assert [type(e) for e in events] == [Arrived, Lost]
    assert events[1].peer == endpoint


def test_departures_are_not_mixed_up(ports, monkeypatch):
    """A new connection may get the number of one that has just gone."""
    monkeypatch.setenv(UNIX_SOCKETS, "never")
    (endpoint,) = ports(1)
    server = ZmqServer(endpoint, CONFIG)
    try:
        gone, here = [], []
        for number in range(5):
            trainer = ZmqTrainer(CONFIG)
            trainer.connect(endpoint)
            trainer.send(endpoint, [b"%d" % number])
            if number < 4:
                trainer.close()
        events = []
        until = time.monotonic() + 5
        while len(gone) < 4 and time.monotonic() < until:
            events = server.poll(0.05)
            gone += [e.peer for e in events if isinstance(e, Lost)]
            here += [e.peer for e in events if isinstance(e, Arrived)]
        events = server.poll(0.2)
        here += [e.peer for e in events if isinstance(e, Arrived)]
        assert len(set(here)) == 5
        assert len(gone) == 4
        (last,) = set(here) - set(gone)
        server.send(last, [b"still there"])
        assert bytes(wait_for(trainer, Arrived)[0].frames[0]) == b"still there"
        trainer.close()
    finally:
        server.close(0)


def test_a_trainer_may_come_first(ports, monkeypatch):
    monkeypatch.setenv(UNIX_SOCKETS, "never")
    (endpoint,) = ports(1)
    trainer = ZmqTrainer(CONFIG)
    trainer.connect(endpoint)
    trainer.send(endpoint, [b"early"])
    assert trainer.poll(0.2) == []
    server = ZmqServer(endpoint, CONFIG)
    try:
        assert bytes(wait_for(server, Arrived)[0].frames[0]) == b"early"
    finally:
        trainer.close(0)
        server.close(0)


def test_port_in_use(ports):
    (endpoint,) = ports(1)
    server = ZmqServer(endpoint, CONFIG)
    try:
        wanted = f"endpoint {endpoint} is in use by another process"
        with pytest.raises(ClusterError) as caught:
            ZmqServer(endpoint, CONFIG)
        assert str(caught.value) == wanted
    finally:
        server.close(0)


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        ("nowhere", "'nowhere' is not host:port"),
        ("127.0.0.1:http", "is not host:port"),
        ("127.0.0.1:70000", "is not host:port"),
        ("no.such.host.invalid:5", "host 'no.such.host.invalid' is unknown"),
        ("192.0.2.1:5", "endpoint 192.0.2.1:5 cannot be bound"),
    ],
)
def test_endpoints_that_cannot_be_had(endpoint, text):
    with pytest.raises(ClusterError, match=text):
        ZmqServer(endpoint, CONFIG)


def test_a_port_that_the_launcher_bound(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as bound:
        endpoint = "{}:{}".format(*bound.getsockname())
        monkeypatch.setenv(LISTEN_FDS, f"other:1=99,{endpoint}={bound.fileno()}")
        monkeypatch.setenv(UNIX_SOCKETS, "never")
        trainer = ZmqTrainer(CONFIG)
        trainer.connect(endpoint)
        trainer.send(endpoint, [b"hello"])
        server = ZmqServer(endpoint, CONFIG)
        try:
            assert bytes(wait_for(server, Arrived)[0].frames[0]) == b"hello"
        finally:
            trainer.close(0)
            server.close(0)
            bound.detach()  # ZeroMQ has closed it


@pytest.fixture
def curve(monkeypatch):
    """Keys of a server and a trainer, in the environment."""
    server, client = zmq.curve_keypair(), zmq.curve_keypair()
    for name, key in (
        ("SERVER_PUBLIC", server[0]),
        ("SERVER_SECRET", server[1]),
        ("CLIENT_PUBLIC", client[0]),
        ("CLIENT_SECRET", client[1]),
        ("CLIENTS", client[0]),
    ):
        monkeypatch.setenv(f"FLUIDX_CURVE_{name}", key.decode())
    monkeypatch.setenv(UNIX_SOCKETS, "never")


def test_curve_lets_the_known_in(curve, ports):
    (endpoint,) = ports(1)
    server, trainer = ZmqServer(endpoint, CONFIG), ZmqTrainer(CONFIG)
    try:
        trainer.connect(endpoint)
        trainer.send(endpoint, [b"secret"])
        assert bytes(wait_for(server, Arrived)[0].frames[0]) == b"secret"
    finally:
        trainer.close(0)
        server.close(0)


@pytest.mark.parametrize("plain", [True, False])
def test_curve_keeps_strangers_out(curve, ports, monkeypatch, plain):
    (endpoint,) = ports(1)
    server = ZmqServer(endpoint, CONFIG)
    public, secret = zmq.curve_keypair()
    if plain:
        monkeypatch.delenv("FLUIDX_CURVE_CLIENT_PUBLIC")
        monkeypatch.delenv("FLUIDX_CURVE_CLIENT_SECRET")
    else:
        monkeypatch.setenv("FLUIDX_CURVE_CLIENT_PUBLIC", public.decode())
        monkeypatch.setenv("FLUIDX_CURVE_CLIENT_SECRET", secret.decode())
    trainer = ZmqTrainer(CONFIG)
    try:
        trainer.connect(endpoint)
        trainer.send(endpoint, [b"let me in"])
        until = time.monotonic() + 0.6
        refused = False
        while time.monotonic() < until:
            assert server.poll(0.05) == []
            if not plain and not refused:
                with pytest.raises(ClusterError, match="CURVE keys"):
                    wait_for(trainer, Arrived)
                refused = True
    finally:
        trainer.close(0)
        server.close(0)


def test_half_of_the_keys_is_an_error(curve, ports, monkeypatch):
    monkeypatch.delenv("FLUIDX_CURVE_SERVER_PUBLIC")
    with pytest.raises(ClusterError, match="FLUIDX_CURVE_SERVER_PUBLIC"):
        ZmqServer(ports(1)[0], CONFIG)
    trainer = ZmqTrainer(CONFIG)
    with pytest.raises(ClusterError, match="FLUIDX_CURVE_SERVER_PUBLIC"):
        trainer.connect(ports(1)[0])
    trainer.close(0)
    monkeypatch.setenv("FLUIDX_CURVE_SERVER_PUBLIC", "short")
    with pytest.raises(ClusterError, match="40 characters"):
        ZmqServer(ports(1)[0], CONFIG)


def test_signs_of_life_go_on_while_a_trainer_computes(ports, monkeypatch):
    """Silent for longer than the deadline, but alive: nobody gives it up."""
    monkeypatch.setenv("FLUIDX_RPC_DEADLINE", "0.8")
    monkeypatch.setenv("FLUIDX_HEARTBEAT", "0.1")
    endpoints = ports(1)
    served = {}

    def serve():
        served.update(toy.run_server(endpoints[0], ["b"], endpoints, 1))

    thread = threading.Thread(target=serve)
    thread.start()
    params = toy.run_trainer(
        0, ["b"], endpoints, 2, before_step=lambda step: time.sleep(1.2)
    )
    thread.join()
    np.testing.assert_array_equal(params["b"], served["b"])
    np.testing.assert_allclose(params["b"], toy.expected(["b"], [2])["b"], 1e-5)


def test_memory_is_kept_unless_the_user_says_else(monkeypatch):
    keep_buffers.cache_clear()
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert keep_buffers() is False
    keep_buffers.cache_clear()
    monkeypatch.delenv("MALLOC_ARENA_MAX")
    assert keep_buffers() in (True, False)
