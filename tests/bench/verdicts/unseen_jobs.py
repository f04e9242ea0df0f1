"""Incidents of code, pace and people by means that no other set has, written before any rule.

What a rank says of itself is old where its steps are long, wrong where its clock was set back, and
of another attempt where the job was started again. `unseen_machines` holds those of machines.
"""

import json
from random import Random

from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.causes_machines import any_size, one_of, peers_of
from tests.bench.verdicts.fleet import (
    LOCAL_PHASES,
    NOW,
    STALL_AFTER_S,
    WAITING,
    Fleet,
    _leave,
    ends,
    remember,
    slow_ranks,
    stands_still,
    trains,
)
from tests.bench.verdicts.incident import Truth, nobody, place
from tests.bench.verdicts.oncall_machines import sized

HANGS = (F.HANG_MISMATCH, F.USER_CODE)
SOUND = (F.NO_FAULT, F.UNKNOWN)
COMPUTES = ("functional.py:linear", "model.py:Block.forward", "train.py:main")
WAITS = ("distributed_c10d.py:all_reduce", "train.py:Step.reduce", "train.py:main")


def _trace(where: str, said: str) -> str:
    return (
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/srv/site/code/train.py", line 118, in main\n'
        "[rank2]:     run(step)\n"
        f'[rank2]:   File "/srv/site/code/{where}\n'
        f"[rank2]: {said}\n"
    )


def _paced(rng: Random, step_s: float) -> Fleet:
    """A sound job of such steps, whose past is known."""
    it = any_size(rng, least=3)
    it.step_s, it.past = step_s, True
    trains(it)
    return it


def _within_a_step(it: Fleet, age_s: float, phase: str) -> None:
    """Every rank entered this phase of its step about so long ago."""
    for rank, values in enumerate(it.ranks):
        age = age_s * it.rng.uniform(0.9, 1.0)
        values |= {"phase": phase, "phase_age_s": age, "progress_age_s": age}
        values["process_state"] = "R"
        it.stacks[rank] = COMPUTES


def long_steps(rng: Random) -> tuple[Fleet, Truth]:
    """A step takes a minute, a stall is declared after a quarter of one; all compute."""
    it = _paced(rng, rng.uniform(40.0, 120.0))
    age = rng.uniform(STALL_AFTER_S * 1.1, 0.8 * it.step_s)
    _within_a_step(it, age, rng.choice(("forward", "backward")))
    return it, nobody(*SOUND)


def long_step_and_one_is_last(rng: Random) -> tuple[Fleet, Truth]:
    """Sequences differ in length: all but one wait, within what a step always took."""
    it = _paced(rng, rng.uniform(60.0, 120.0))
    _within_a_step(it, rng.uniform(0.4, 0.7) * it.step_s, "backward")
    last = rng.randrange(it.job.world_size)
    for rank, values in enumerate(it.ranks):
        if rank != last:
            waits = rng.uniform(STALL_AFTER_S * 1.05, 0.35 * it.step_s)
            values |= {"phase": WAITING, "phase_age_s": waits, "progress_age_s": waits}
            values["process_state"] = "S"
            it.stacks[rank] = WAITS
    return it, nobody(*SOUND)


def long_steps_and_a_deadlock(rng: Random) -> tuple[Fleet, Truth]:
    """Steps of half a minute, and one rank stands for many of them."""
    it = _paced(rng, rng.uniform(20.0, 60.0))
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="forward")
    for values in it.ranks:
        age = it.step_s * rng.uniform(7.0, 7.1)
        values |= {"phase_age_s": age, "progress_age_s": age}
    it.stacks[rank] = ("cache.py:Cache.get", "train.py:main")
    return it, place(HANGS, there)


def stopped_and_continued(rng: Random) -> tuple[Fleet, Truth]:
    """Something stops one rank for a second and lets it go, again and again: steps are slower."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    slow_ranks(it, [rank], rng.uniform(1.6, 3.0))
    it.ranks[rank]["process_state"] = rng.choice("TTR")
    return it, place((F.STRAGGLER_SLOW, *HANGS), there)


def frozen_by_its_container(rng: Random) -> tuple[Fleet, Truth]:
    """A control group of one rank is frozen: by `docker pause`, or by somebody's script."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank])
    state, wait = rng.choice((("D", "__refrigerator"), ("S", "do_freezer_trap")))
    it.ranks[rank] |= {"process_state": state, "kernel_wait": wait}
    del it.stacks[rank]
    return it, place(HANGS, there)


def held_back_by_its_memory_limit(rng: Random) -> tuple[Fleet, Truth]:
    """Above memory.high the kernel makes every allocation of a rank sleep."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    slow_ranks(it, [rank], rng.uniform(1.5, 4.0))
    it.ranks[rank] |= {"process_state": "D", "kernel_wait": "mem_cgroup_handle_over_high"}
    it.reads(there, "job.cgroup", "job.cgroup.memory_pct", 99.1, f"rank:{rank}")
    return it, place((F.STRAGGLER_SLOW, F.CPU_OOM), there)


def pauses_for_garbage(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank collects garbage at steps of its own, and all wait for each in turn."""
    it = any_size(rng, least=3)
    longer = it.step_s * rng.uniform(1.3, 1.7)
    for values in it.ranks:
        waits = it.step_s * rng.uniform(0.1, 0.5)
        age = rng.uniform(0.0, min(longer, STALL_AFTER_S / 4))
        values |= {"step_s": longer, "wait_s": waits, "phase_age_s": age, "progress_age_s": age}
    it.now_s = longer
    remember(it)
    return it, nobody(F.STRAGGLER_SLOW, *SOUND)


def accumulates_gradients(rng: Random) -> tuple[Fleet, Truth]:
    """Many micro-batches a step; the first stage of the pipeline always waits least."""
    it = _paced(rng, rng.uniform(8.0, 14.0))
    first = it.job.nodes[0]
    for rank, values in enumerate(it.ranks):
        share = 0.02 if it.job.node_of(rank) == first else rng.uniform(0.15, 0.28)
        values["wait_s"] = it.step_s * share
    remember(it)
    return it, nobody(F.NO_FAULT)


def _first_step(rng: Random, frames: tuple[str, ...]) -> tuple[Fleet, int]:
    """Minutes into the very first step: all but one have come through."""
    it = any_size(rng, least=3)
    it.past = False
    late = rng.randrange(it.job.world_size)
    age = rng.uniform(60.0, 240.0)
    for rank, values in enumerate(it.ranks):
        waits = rng.uniform(0.1, 0.8) * age
        phase, mine = ("forward", age) if rank == late else (WAITING, waits)
        values |= {"step": 0, "phase": phase, "phase_age_s": mine, "progress_age_s": mine}
        values["process_state"] = "R" if rank == late else "S"
        for name in ("wait_s", "step_s", "recent_steps", "recent_wait_s", "recent_step_s"):
            del values[name]
        del values["recent_load_s"]
        it.stacks[rank] = frames if rank == late else WAITS
    return it, late


def first_step_builds_an_extension(rng: Random) -> tuple[Fleet, Truth]:
    """One node's cache was empty: its rank waits for a compiler."""
    it, _ = _first_step(
        rng, ("subprocess.py:communicate", "cpp_extension.py:_run_ninja_build", "train.py:main")
    )
    return it, nobody(*SOUND)


def first_step_tunes_kernels(rng: Random) -> tuple[Fleet, Truth]:
    """One rank tries all variants of a kernel; nobody's table knows its function names."""
    it, _ = _first_step(rng, ("kernels.py:pick_fastest", "model.py:Block.forward", "train.py:main"))
    return it, nobody(F.HANG_MISMATCH, *SOUND)


def saves_every_step(rng: Random) -> tuple[Fleet, Truth]:
    """Half of every step is a save; the look finds most ranks in it."""
    it = any_size(rng, least=3)
    for rank, values in enumerate(it.ranks):
        values["phase"] = "checkpoint" if rank % 3 else WAITING
        values["phase_longest_s"] = it.step_s * 0.6
    return it, nobody(F.NO_FAULT)


def evaluates_for_a_minute(rng: Random) -> tuple[Fleet, Truth]:
    """All ranks evaluate, every hundredth step, for longer than a stall."""
    it = any_size(rng, least=3)
    age = rng.uniform(STALL_AFTER_S * 1.2, 55.0)
    _within_a_step(it, age, "evaluation")
    for values in it.ranks:
        values["phase_longest_s"] = 60.0
    return it, nobody(*SOUND)


def ends_while_somebody_looks(rng: Random) -> tuple[Fleet, Truth]:
    """The last step is done: some ranks have left with 0, others are just saving."""
    it = any_size(rng, least=3)
    for values in it.ranks:
        age = rng.uniform(0.1, 4.0)
        phase = rng.choice(("done", "done", "checkpoint"))
        values |= {"phase": phase, "phase_age_s": age, "progress_age_s": age}
        if phase == "done":
            _leave(values, 0, "training is done\n")
    return it, nobody(*SOUND)


def started_again_by_somebody(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody restarted it by hand: some nodes answered before, some after."""
    it = any_size(rng, least=4)
    half = len(it.nodes) // 2
    told = "[rank2]: W0314 received SIGTERM, terminating\n"
    for rank, values in enumerate(it.ranks):
        age = rng.uniform(0.2, 3.0)
        values |= {"progress_age_s": age, "phase_age_s": age}
        if it.nodes.index(it.job.node_of(rank)) < half:
            _leave(values, -15, told.replace("rank2", f"rank{rank}"))
        else:
            values |= {"step": 0, "phase": "load", "last_words": ""}
    it.ranks_later = [
        {**values, "alive": True, "process_state": "R", "step": 1, "phase": "forward"}
        for values in it.ranks
    ]
    for values in it.ranks_later:
        values.pop("exit_status", None)
        values["last_words"] = ""
    return it, nobody(F.PREEMPTION_SIGTERM, *SOUND)


_ELASTIC = (
    "W0314 09:11:02 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 4471"
    " closing signal SIGTERM\n"
    "E0314 09:11:03 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1)"
    " local_rank: 0 (pid: 4470) of binary: /usr/bin/python3\n"
    "I0314 09:11:04 torch/distributed/elastic/agent/server/api.py:902] [default] Worker group"
    " FAILED. 2/3 attempts left; will restart worker group\n"
    "I0314 09:11:09 torch/distributed/elastic/agent/server/api.py:700] [default] Rendezvous"
    " complete for workers. restart_count=1\n"
)


def elastic_restart(rng: Random) -> tuple[Fleet, Truth]:
    """The ranks were started again after one raised; the log tells, and training goes on."""
    it = any_size(rng, least=3)
    failed = rng.randrange(it.job.world_size)
    back = rng.randrange(30, 90)
    for rank, values in enumerate(it.ranks):
        raised = _trace('data.py", line 9, in get', "ConnectionResetError: [Errno 104] reset")
        values["step"] = back
        steps = "".join(f"step {back - n} loss 2.2\n" for n in (3, 2, 1))
        values["last_words"] = (raised if rank == failed else "") + _ELASTIC + steps
    return it, nobody(F.NO_FAULT)


def hang_after_an_elastic_restart(rng: Random) -> tuple[Fleet, Truth]:
    """The traceback is of the attempt before; now another rank stands."""
    it = any_size(rng, least=4)
    there, other = it.some_nodes(2)
    rank, failed = it.rank_on(there), it.rank_on(other)
    stands_still(it, [rank], where="forward")
    it.stacks[rank] = ("locks.py:acquire", "train.py:main")
    for number, values in enumerate(it.ranks):
        raised = _trace('data.py", line 9, in get', "ConnectionResetError: [Errno 104] reset")
        steps = "step 31 loss 2.2\nstep 32 loss 2.2\n"
        values["last_words"] = (raised if number == failed else "") + _ELASTIC + steps
    return it, place(HANGS, there)


def log_was_rotated(rng: Random) -> tuple[Fleet, Truth]:
    """The log of the rank that raised was renamed a moment before; its status is all there is."""
    it = any_size(rng, least=3)
    there = one_of(it)
    ends(it, [it.rank_on(there)], 1, "")
    return it, place((F.USER_CODE, F.UNKNOWN), there)


def log_starts_within_a_traceback(rng: Random) -> tuple[Fleet, Truth]:
    """Hundreds of frames: the kept end of the log has no head any more."""
    it = any_size(rng, least=3)
    there = one_of(it)
    frames = "".join(
        f'[rank2]:   File "/srv/site/code/tree.py", line {n}, in walk\n[rank2]:     walk(child)\n'
        for n in range(40, 80)
    )
    said = frames + "[rank2]: ValueError: negative number of tokens in node 8812\n"
    ends(it, [it.rank_on(there)], 1, said)
    return it, place((F.USER_CODE, F.DATA_LOADER), there)


def _dump(it: Fleet, last: int, pending: str, age_s: float) -> bytes:
    """A flight recorder of one group of all ranks, written so long ago."""
    created = int((NOW.timestamp() - age_s) * 1e9)
    rows = [
        {
            "record_id": number, "pg_id": 0, "process_group": ["0", "default_pg"],
            "collective_seq_id": number, "p2p_seq_id": 0, "is_p2p": False,
            "profiling_name": name, "state": state, "retired": state == "completed",
            "input_sizes": [[1024]], "input_dtypes": ["Float"],
            "time_created_ns": created - (last - number) * 10**8,
        }
        for number, name, state in (
            (last - 1, "nccl:all_reduce", "completed"),
            (last, pending or "nccl:all_reduce", "scheduled" if pending else "completed"),
        )
    ]  # fmt: skip
    done = last - 1 if pending else last
    return json.dumps(
        {
            "version": "2.5", "entries": rows,
            "pg_config": {"0": {"name": "0", "desc": "default_pg",
                                "ranks": str(list(range(it.job.world_size)))}},
            "pg_status": {"0": {"last_enqueued_collective": str(last),
                                "last_completed_collective": str(done)}},
        }
    ).encode()  # fmt: skip


def dumps_of_the_attempt_before(rng: Random) -> tuple[Fleet, Truth]:
    """Recorder files of an hour ago, of a hang at another node; this hang wrote none."""
    it = any_size(rng, least=4)
    there, before = it.some_nodes(2)
    stands_still(it, [it.rank_on(there)], where="forward")
    then = it.rank_on(before)
    for rank in range(it.job.world_size):
        waits = rank != then
        it.dumps[rank] = _dump(it, 60 if waits else 59, "nccl:all_reduce" if waits else "", 3700.0)
    return it, place(HANGS, there)


def other_code_on_one(rng: Random) -> tuple[Fleet, Truth]:
    """One node still has the release of yesterday, which gathers where the others reduce."""
    it = any_size(rng, least=4)
    there = one_of(it)
    mine = it.job.ranks_on(there)
    age = stands_still(it, ())
    for rank in range(it.job.world_size):
        name = "nccl:all_gather" if rank in mine else "nccl:all_reduce"
        it.dumps[rank] = _dump(it, 412, name, age)
        if rank in mine:
            it.stacks[rank] = ("distributed_c10d.py:all_gather", "train.py:main")
    return it, place((F.ENVIRONMENT_MISMATCH, *HANGS), there)


def other_code_raises_on_one(rng: Random) -> tuple[Fleet, Truth]:
    it = any_size(rng, least=3)
    there = one_of(it)
    said = _trace(
        'model.py", line 14, in __init__',
        "AttributeError: 'ModelConfig' object has no attribute 'rope_base'",
    )
    ends(it, it.job.ranks_on(there), 1, said)
    return it, place((F.USER_CODE, F.ENVIRONMENT_MISMATCH), there)


def other_nccl_settings(rng: Random) -> tuple[Fleet, Truth]:
    """One node's ranks were told another interface; the first collective never ends."""
    it = any_size(rng, least=4)
    there = one_of(it)
    it.past = False
    stands_still(it, ())
    for rank, values in enumerate(it.ranks):
        name = "docker0:172.17.0.1" if rank in it.job.ranks_on(there) else "eth0:10.0.0.9"
        values |= {"step": 0, "last_words": f"h:71:71 [0] NCCL INFO NET/Socket : Using [0]{name}\n"}
    classes = (F.NCCL_CONFIG, F.ENVIRONMENT_MISMATCH, F.NETWORK_ETH, F.UNKNOWN)
    return it, nobody(*classes, seen_at=[there])


def wrong_world_size(rng: Random) -> tuple[Fleet, Truth]:
    """Told to be one more than they are, they waited half an hour for nobody."""
    it = any_size(rng, least=3)
    it.past = False
    there = it.job.world_size
    said = (
        f"[rank2]: torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for"
        f" clients. {there}/{there + 1} clients joined.\n"
    )
    ends(it, range(there), 1, said, phase="load")
    for values in it.ranks:
        values["step"] = 0
    return it, nobody(F.NCCL_CONFIG, F.ENVIRONMENT_MISMATCH, F.USER_CODE, F.UNKNOWN)


def port_is_taken(rng: Random) -> tuple[Fleet, Truth]:
    """A process of an earlier job still listens where rank 0 wants to."""
    it = any_size(rng, least=3)
    it.past = False
    said = _trace(
        'train.py", line 20, in main',
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local"
        " network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message:"
        " address already in use",
    )
    ends(it, [0], 1, said, phase="load")
    refused = (
        "[rank2]:[W socket.cpp:755] [c10d] The client socket has failed to connect to"
        " [10.0.0.1]:29500 (errno: 111 - Connection refused).\n"
    )
    for rank, values in enumerate(it.ranks):
        values |= {"step": 0, "phase": "load"}
        if rank and values["alive"] is False:
            values["last_words"] = refused.replace("rank2", f"rank{rank}")
    classes = (F.ENVIRONMENT_MISMATCH, F.NCCL_CONFIG, F.USER_CODE, F.UNKNOWN, F.NETWORK_ETH)
    return it, place(classes, it.nodes[0])


def _clock_went_back(rng: Random) -> tuple[Fleet, str, str]:
    """A hang beside a node whose ranks' last moments lie in its future: they have no age."""
    it = any_size(rng, least=4)
    there, back = it.some_nodes(2)
    stands_still(it, [it.rank_on(there)], where="forward")
    for rank in it.job.ranks_on(back):
        for name in ("phase_age_s", "progress_age_s"):
            del it.ranks[rank][name]
    return it, there, back


def clock_was_set_right(rng: Random) -> tuple[Fleet, Truth]:
    """A fast clock was corrected, which shows nowhere now; another node's rank hangs."""
    it, there, _ = _clock_went_back(rng)
    return it, place((F.UNKNOWN, *HANGS), there)


def clock_went_back_and_one_hangs(rng: Random) -> tuple[Fleet, Truth]:
    """The same, and the clock is an hour slow now."""
    it, there, back = _clock_went_back(rng)
    it.clock_off_s[back] = -3600.0
    return it, place((F.ENVIRONMENT_MISMATCH, *HANGS), there, back)


def loss_is_zero(rng: Random) -> tuple[Fleet, Truth]:
    """All labels are masked since the new shard: steps go on, and nothing is learnt."""
    it = any_size(rng, least=3)
    it.past = True
    it.losses_now = 0.0
    return it, nobody(F.UNKNOWN, F.NUMERIC_NAN, F.USER_CODE)


def busy_machine(rng: Random) -> tuple[Fleet, Truth]:
    """A young and sound job with short steps, on hosts that others use as well."""
    it = sized(rng, rng.choice((4, 5, 8)), rng.choice((1, 2)))
    it.step_s, it.past = rng.uniform(0.25, 0.8), False
    trains(it)
    for node in it.nodes:
        it.reads(node, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(2.5, 9.0))
    lucky = rng.randrange(it.job.world_size)
    for rank, values in enumerate(it.ranks):
        share = 0.03 if rank == lucky else rng.uniform(0.2, 0.4)
        values["wait_s"] = share * it.step_s
    remember(it)
    return it, nobody(*SOUND)


def all_in_one_frame(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank sleeps in the same line of its own code."""
    it = any_size(rng, least=3)
    stands_still(it, range(it.job.world_size), where="forward")
    for rank in range(it.job.world_size):
        it.stacks[rank] = ("quota.py:wait_for_licence", "train.py:main")
    return it, nobody(F.UNKNOWN, *HANGS)


def all_in_one_frame_but_phases(rng: Random) -> tuple[Fleet, Truth]:
    """The same, called from two places: what their progress says differs, where they stand not."""
    it, truth = all_in_one_frame(rng)
    for values in it.ranks:
        values["phase"] = rng.choice(LOCAL_PHASES)
        values["process_state"] = rng.choice("SSR")
    odd = rng.randrange(it.job.world_size)
    it.ranks[odd]["phase"] = WAITING
    return it, truth


def no_more_threads(rng: Random) -> tuple[Fleet, Truth]:
    """The limit of processes of one login was reached."""
    it = any_size(rng, least=3)
    there = one_of(it)
    said = _trace('data.py", line 51, in start', "RuntimeError: can't start new thread")
    ends(it, [it.rank_on(there)], 1, said, phase="load")
    classes = (F.USER_CODE, F.ENVIRONMENT_MISMATCH, F.CPU_OOM, F.DATA_LOADER)
    return it, place(classes, there)


def capped_after_a_while(rng: Random) -> tuple[Fleet, Truth]:
    """A rate limit on one node's interface: its queue is full, and packets wait in it."""
    it = any_size(rng, least=4)
    bad = one_of(it)
    slow_ranks(it, (), rng.uniform(2.0, 6.0))
    for node, peer in peers_of(it, bad):
        it.reads(node, "fabric.tcp", "fabric.tcp.delay_ms", rng.uniform(60.0, 300.0), peer)
    classes = frozenset({F.NETWORK_ETH, F.NETWORK_LINK, F.STRAGGLER_SLOW})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))
