"""fabric.tcp and job.cgroup read what the kernel keeps; files and sockets stand in for a node."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.checks.probes import load_probe, read


def test_the_kernel_tells_of_a_real_connection() -> None:
    """Both ends of a connection of this process show up, with a round trip and a packet size."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0] as peer:
            client.sendall(b"x" * 5000)
            while peer.recv(65536) == b"":
                pass
            found = load_probe("fabric.tcp").connections()
    (sent,) = [c for c in found if c["ports"][1] == port]
    assert (sent["own"], sent["peer"]) == ("127.0.0.1", "127.0.0.1")
    assert sent["segments"] >= 1
    assert sent["pmtu"] >= 1280
    assert 0 < sent["rtt_us"] < 10_000_000
    assert not load_probe("fabric.tcp").is_of_a_job(sent)


def measured(
    *connections: Mapping[str, object], before: Mapping[object, Mapping[str, object]] | None = None
) -> dict[str, object]:
    """What is said of one peer with these connections after a tenth of a second."""
    probe = load_probe("fabric.tcp")
    readings = probe.Readings()
    usual = {"state": 1, "timeouts": 0, "unacked": 0, "last_sent_ms": 5, "last_received_ms": 5}
    group = [{**usual, "key": n, **connection} for n, connection in enumerate(connections)]
    probe.measure_peer(readings, "peer:10.0.0.2", group, before or {}, 100_000.0)
    return {row["name"].removeprefix("fabric.tcp."): row["value"] for row in readings.rows}


def test_a_connection_that_cannot_be_made_counts_its_time_outs() -> None:
    """Where every packet is dropped a new start gets no further than asking for connections."""
    connecting = {"state": 2, "timeouts": 4, "rtt_us": 1000, "rttvar_us": 0}
    assert measured(connecting)["timeouts_in_a_row"] == 4
    assert "delay_ms" not in measured(connecting)


def test_only_connections_in_use_tell_of_the_delay() -> None:
    """The store's connection measured its round trip an hour ago."""
    idle = {"rtt_us": 90, "rttvar_us": 10, "last_sent_ms": 997880, "last_received_ms": 997880}
    assert "delay_ms" not in measured(idle)
    assert measured(idle, {"rtt_us": 51000, "rttvar_us": 1000})["delay_ms"] == 50.0
    assert measured({"timeouts": 5})["timeouts_in_a_row"] == 0


@pytest.mark.parametrize(
    ("ports", "peer", "is_of_a_job"),
    [((40000, 29500), "10.0.0.2", True), ((22, 40000), "10.0.0.2", False),
     ((40000, 22), "10.0.0.2", False), ((1, 2), "127.0.0.1", False), ((1, 2), "::1", False),
     ((1, 2), "fd00::2", True)],
)  # fmt: skip
def test_logins_and_the_machine_itself_are_no_peers(
    ports: tuple[int, int], peer: str, is_of_a_job: bool
) -> None:
    connection = {"ports": ports, "peer": peer}
    assert load_probe("fabric.tcp").is_of_a_job(connection) is is_of_a_job


def test_a_path_is_busy_while_data_waits_and_not_while_the_peer_has_no_room() -> None:
    old = {"busy_us": 5_000_000, "peer_full_us": 1_000_000}
    sends = {"busy_us": 5_090_000, "peer_full_us": 1_010_000}
    assert measured(sends, before={0: old})["busy_pct"] == 80.0
    held_up = {"busy_us": 5_090_000, "peer_full_us": 1_090_000}
    assert measured(held_up, before={0: old})["busy_pct"] == 0.0
    assert "busy_pct" not in measured(sends)
    assert "busy_pct" not in measured({}, before={0: {}})


def test_what_the_peer_had_already_was_not_lost() -> None:
    """A frozen peer makes the sender impatient; the duplicates it reports are no lost packets."""
    lost = load_probe("fabric.tcp").lost
    assert lost({"retransmits": 792, "duplicates": 792}) == 0
    assert lost({"retransmits": 9, "duplicates": 4}) == 5
    assert lost({}) == 0


@pytest.mark.parametrize("junk", [b"", b"\0" * 71, b"\2" + b"\0" * 80, b"\2" * 200])
def test_a_message_of_another_shape_is_no_connection(junk: bytes) -> None:
    assert load_probe("fabric.tcp").read_connection(junk.ljust(48, b"\0")) is None


def test_an_older_kernel_that_tells_less_costs_only_what_it_leaves_out() -> None:
    read_info = load_probe("fabric.tcp").read_info
    assert "duplicates" not in read_info(b"\1" * 160)
    assert read_info(b"\1" * 160)["segments"] == 0x01010101


def job(tmp_path: Path) -> dict[str, object]:
    """This very process is rank 3; its control groups are those of the machine the tests run on."""
    (tmp_path / "rank-00003.process.json").write_text(json.dumps({"pid": os.getpid()}))
    return {"ranks": [3], "log_dir": str(tmp_path), "root": str(tmp_path / "cgroup")}


def group(root: Path, **files: str) -> str:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name.replace("__", ".")).write_text(text)
    return str(root)


@pytest.mark.parametrize(
    "files",
    [{"cpu__max": "50000 100000", "cpu__stat": "nr_periods 40\nnr_throttled 38\nusage_usec 3"},
     {"cpu__cfs_quota_us": "50000", "cpu__cfs_period_us": "100000",
      "cpu__stat": "nr_periods 40\nnr_throttled 38\nthrottled_time 77"}],
    ids=["version 2", "version 1"],
)  # fmt: skip
def test_a_cpu_limit_says_how_often_it_holds_a_rank_back(
    tmp_path: Path, files: dict[str, str]
) -> None:
    probe = load_probe("job.cgroup")
    place = group(tmp_path / "limited", **files)
    readings = probe.Readings()
    probe.measure_cpu(readings, "rank:3", [place], {place: {"nr_periods": 20, "nr_throttled": 20}})
    values = {row["name"]: row["value"] for row in readings.rows}
    assert values == {"job.cgroup.throttled_pct": 90.0, "job.cgroup.cpu_limit": 0.5}


@pytest.mark.parametrize(
    "files",
    [{"cpu__max": "max 100000"}, {"cpu__cfs_quota_us": "-1", "cpu__cfs_period_us": "100000"}, {},
     {"cpu__max": "junk"}],
)  # fmt: skip
def test_no_cpu_limit_is_no_limit(tmp_path: Path, files: dict[str, str]) -> None:
    assert load_probe("job.cgroup").cpu_limit(group(tmp_path / "free", **files)) is None


@pytest.mark.parametrize(
    ("files", "kills"),
    [({"memory__max": "1000", "memory__current": "250", "memory__events": "oom 1\noom_kill 2"}, 2),
     ({"memory__limit_in_bytes": "1000", "memory__usage_in_bytes": "250",
       "memory__oom_control": "under_oom 0\noom_kill 3"}, 3)],
)  # fmt: skip
def test_a_memory_limit_says_what_it_killed(
    tmp_path: Path, files: dict[str, str], kills: int
) -> None:
    probe = load_probe("job.cgroup")
    readings = probe.Readings()
    assert probe.measure_memory(readings, "rank:3", group(tmp_path / "limited", **files))
    values = {row["name"]: row["value"] for row in readings.rows}
    assert values == {"job.cgroup.memory_pct": 25.0, "job.cgroup.oom_kills": kills}


def test_an_unlimited_group_says_nothing_of_memory(tmp_path: Path) -> None:
    probe = load_probe("job.cgroup")
    for files in ({"memory__max": "max", "memory__current": "5"}, {}):
        place = group(tmp_path / str(len(files)), **files)
        assert not probe.measure_memory(probe.Readings(), "rank:3", place)


def test_the_groups_of_a_process_are_looked_at_from_the_innermost_outwards(tmp_path: Path) -> None:
    asked = job(tmp_path)
    groups = load_probe("job.cgroup").groups_of(os.getpid(), str(tmp_path / "cgroup"))
    assert groups
    assert all(directory.startswith(str(tmp_path / "cgroup")) for _, directory in groups)
    assert ".." not in "".join(load_probe("job.cgroup").upwards("/c", "/../../etc/x"))
    assert read("job.cgroup", asked).notes == ()


def test_a_rank_that_is_gone_has_no_group_and_that_is_no_gap(tmp_path: Path) -> None:
    (tmp_path / "rank-00003.process.json").write_text(json.dumps({"pid": 2**22 + 1}))
    found = read("job.cgroup", {"ranks": [3], "log_dir": str(tmp_path)})
    assert found.values == {}
    assert found.notes == ("not supported: rank 3 has no process now",)
