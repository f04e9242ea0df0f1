"""The flight recorder is dumped when collectives stop, once, and never while they go on."""

from pathlib import Path

from brctl.training.flight import FlightWatch, dump_target


class SettableClock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_long_pause_is_dumped_once(tmp_path: Path) -> None:
    """A pause gives one dump; the next collective and the next pause give a new one."""
    clock, dumps = SettableClock(), iter([b"first", b"second", b"third"])
    watch = FlightWatch(tmp_path / "fr_3", 10.0, lambda: next(dumps), clock)
    clock.now += 10.0
    watch.look()
    assert not (tmp_path / "fr_3").exists()
    clock.now += 1.0
    watch.look()
    watch.look()
    assert (tmp_path / "fr_3").read_bytes() == b"first"
    watch.touch()
    clock.now += 11.0
    watch.look()
    assert (tmp_path / "fr_3").read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["fr_3"]


def test_a_disk_that_takes_no_dump_does_not_stop_training(tmp_path: Path) -> None:
    """The watch says nothing to the trainer; it goes on at the next pause."""
    clock = SettableClock()
    watch = FlightWatch(tmp_path / "missing" / "fr_0", 1.0, lambda: b"{}", clock)
    clock.now += 2.0
    watch.look()
    assert list(tmp_path.iterdir()) == []


def test_dumps_go_where_pytorch_would_put_them() -> None:
    """PyTorch's own variable holds the prefix; without it nothing is dumped."""
    assert dump_target(7, {"TORCH_FR_DUMP_TEMP_FILE": "/logs/fr_"}) == Path("/logs/fr_7")
    assert dump_target(7, {}) is None
