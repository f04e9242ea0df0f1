"""What failed waits longer each time, and never for ever."""

from brctl.watch.retries import LONGEST_S, Retries


def test_each_failure_doubles_the_wait_up_to_ten_minutes() -> None:
    retries = Retries()
    assert [retries.failed("gpu/n1", 0.0) for _ in range(6)] == [30, 60, 120, 240, 480, LONGEST_S]
    retries.forget("gpu/n1")
    assert retries.failed("gpu/n1", 0.0) == 30


def test_only_what_failed_waits_and_only_until_its_time() -> None:
    retries = Retries()
    retries.failed("gpu/n1", 100.0)
    assert [retries.must_wait("gpu/n1", at_s) for at_s in (129.0, 130.0)] == [True, False]
    assert not retries.must_wait("gpu/n2", 100.0)
    retries.keep_only(["gpu/n2"])
    assert not retries.must_wait("gpu/n1", 100.0)
