"""A disk that takes nothing is told of once, and writing goes on when it takes again."""

from brctl.engine.watch.writing import Writing


def _fails() -> None:
    raise OSError(28, "No space left on device")


def _is_written() -> None:
    """The disk takes it."""


def test_trouble_with_the_disk_is_told_once_and_ends_nothing() -> None:
    told: list[str] = []
    writing = Writing(told.append, "the status is not written")
    assert not writing.went_well(_fails)
    assert not writing.went_well(_fails)
    assert told == ["error  the status is not written: [Errno 28] No space left on device"]
    assert "No space" in writing.trouble
    assert writing.went_well(_is_written)
    assert writing.trouble == ""
