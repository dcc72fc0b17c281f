"""The guard that keeps tests off the network."""

import socket

import pytest

from tests.conftest import NetworkForbidden


@pytest.mark.parametrize("host", ["192.0.2.1", "example.com", "10.0.0.1", "2001:db8::1"])
def test_a_connection_beyond_this_machine_fails(host):
    """Addresses reserved for documentation, so that nothing is there even without the guard."""
    with pytest.raises(NetworkForbidden):
        socket.create_connection((host, 80), timeout=0.1)


def test_a_connection_on_this_machine_is_let_through():
    """Strict local servers are how protocols are tested."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
    ):
        assert client.getpeername() == server.getsockname()
