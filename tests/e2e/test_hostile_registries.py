"""Servers that are no registries, or pretend to be one: each is refused by name, soon, and nothing else is asked."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from registry_machine import Machine, http, refused, refusing

KEY = "0" * 64


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def endless(request: bytes) -> Iterator[bytes]:
    yield http()
    while True:
        yield b"x" * 4096


def endless_head(request: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X-More: x\r\n" * 100


def silent(request: bytes) -> Iterator[bytes]:
    time.sleep(30)
    yield b""


def dripping(request: bytes) -> Iterator[bytes]:
    yield http(Content_Length=1000)
    while True:
        time.sleep(0.5)
        yield b"{"


PAGE = b"<!DOCTYPE html><title>Please log in</title>"
SERVERS: dict[str, tuple[bytes | Callable[[bytes], Iterator[bytes]], str]] = {
    "redirect": (http(status="302 Found", Location="http://127.0.0.1:1/", Content_Length=0), "redirects .status 302."),
    "redirect-loop": (http(status="301 Moved", Location="/", Content_Length=0), "redirects .status 301."),
    "endless-body": (endless, "does not say how long it is"),
    "endless-head": (endless_head, "head of the answer does not end"),
    "chunked": (http(b"1\r\n{\r\n", Transfer_Encoding="chunked"), "is encoded"),
    "compressed": (http(b"{", Content_Encoding="gzip", Content_Length=1), "is encoded"),
    "shorter-than-it-says": (http(b"{", Content_Length=100), "ends after 1 of 100 bytes"),
    "longer-than-is-read": (http(b"{", Content_Length=1 << 40), "at most 262144 are read"),
    "length-is-no-number": (http(b"{", Content_Length="-1"), "length is no number"),
    "length-overflows": (http(b"{", Content_Length="9" * 30), "length is no number"),
    "two-lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{", "length is no number"),
    "page-with-status-200": (http(PAGE, Content_Length=len(PAGE)), "it is no JSON"),
    "not-http": (b"220 mail.example ESMTP\r\n\r\n", "is not HTTP"),
    "head-is-cut": (b"HTTP/1.1 200 OK\r\nContent-Le", "ends within its head"),
    "head-is-malformed": (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "head is malformed"),
    "status-500": (http(status="500 Sorry", Content_Length=0), "the server says 500"),
    "silent": (silent, "no answer for 5 s"),
    "slow-body": (dripping, "too slow"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SERVERS)
def test_hostile_servers_are_refused(machine: Machine, kind: str) -> None:
    answer, words = SERVERS[kind]
    with refusing(answer) as (address, requests):
        start = time.monotonic()
        refused(machine, address, KEY, words)
        assert time.monotonic() - start < 30
    assert len(requests) == 1  # nothing is followed, and nothing else asked for


def test_a_server_that_is_not_there(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    refused(machine, f"http://127.0.0.1:{port}", KEY, "cannot be reached")
