"""Names are looked up without holding up anybody: not the loop, not the end of the program."""

import asyncio
import socket
import threading

import pytest

from brctl.fanout.asyncssh.resolver import LOOKUPS, Resolver


def test_a_numeric_address_is_its_own_answer_and_costs_no_thread() -> None:
    before = threading.active_count()
    found = asyncio.run(Resolver().addresses("10.1.2.3", 22))
    assert found == ((socket.AF_INET, ("10.1.2.3", 22)),)
    assert threading.active_count() == before


def test_a_name_of_this_machine_is_found() -> None:
    found = asyncio.run(Resolver().addresses("localhost", 22))
    assert {address[1] for _, address in found} == {22}


@pytest.mark.parametrize("name", ["n3.invalid", "a" * 70 + ".invalid", "x..y"])
def test_a_name_that_is_none_is_an_error_of_the_socket_layer(name: str) -> None:
    """What `login_outcome` reads; a label too long is Python's own exception."""
    with pytest.raises(socket.gaierror):
        asyncio.run(Resolver().addresses(name, 22))


def test_name_servers_that_never_answer_do_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop ends, and the program may, while lookups still wait; later ones wait their turn."""
    released = threading.Event()

    def hang(*_args: object, **_more: object) -> list[object]:
        released.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def ask() -> list[object]:
        resolver = Resolver()

        async def one(number: int) -> object:
            async with asyncio.timeout(0.2):
                return await resolver.addresses(f"n{number}", 22)

        return list(await asyncio.gather(*map(one, range(LOOKUPS + 8)), return_exceptions=True))

    ends = asyncio.run(ask())
    assert [type(end) for end in ends] == [TimeoutError] * (LOOKUPS + 8)
    waiting = [t for t in threading.enumerate() if t is not threading.main_thread()]
    lookups = [t for t in waiting if "look_up" in t.name]
    assert len(lookups) == LOOKUPS
    assert all(thread.daemon for thread in lookups)
    released.set()
    for thread in lookups:
        thread.join()
