"""The decision tree of ByteRobust (arXiv 2509.16293, section 4, Fig. 5) as a table.

The first move that fits a case and what was already tried says what comes next; nothing else in
brctl recommends anything. A playbook that was tried and did not help is passed over, so the same
failure climbs from the cheap to the dear: evict, stop-time checks, restart, roll back, replay.
`playbook` is empty where a person must act; then `say` is what that person does.
"""

from dataclasses import dataclass

from brctl.model.fault import Action, Branch, FaultClass
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.runs.past_search import PastSearch
from brctl.model.verdict import Confidence

NETWORK_ALERTS = 2
"""Links flap: one alert is no reason to evict, two within five minutes are (section 4.1)."""

WITHOUT_JOB = frozenset({"cordon"})
"""Playbooks that need no job; every other one of the tree stops and restarts one."""


@dataclass(frozen=True, slots=True)
class Move:
    """One edge of the tree: what comes next, and when.

    Attributes:
        do: The move in one word of the closed list.
        playbook: What does it; "" when a person must.
        say: Why, or what the person does.
        faults: The case must be of one of these classes of its branch; empty for all.
        nodes: The case must name nodes (True), or it does not matter (None).
        alerts: Network alerts that must have come within five minutes.
        fewer_alerts: There must be fewer than these; None for any number.
        changed: A code change must be on record that can be rolled back; None for no matter.
        job: There must be a job (True), must be none (False), or it does not matter (None).
        advances: The job must make progress, and not be worth stopping for this.
        clean: Nothing but its own ranks must speak against the machine (True), something must
            (False), or it does not matter (None).
        proved: A measurement must convict the machine (True), none must (False), or it does not
            matter (None).
        repeated: The job must have been restarted on these nodes before.
        unreached: Most nodes must not have been reached.
        after: Playbooks of which one must have been tried already; empty for none.
        unless: Playbooks of which none may have been tried.
        source: Where in the paper the edge is drawn, or why we added it.
    """

    branch: Branch
    do: Action
    playbook: str
    say: str
    source: str
    confidence: tuple[Confidence, ...] = tuple(Confidence)
    faults: tuple[FaultClass, ...] = ()
    nodes: bool | None = None
    alerts: int = 0
    fewer_alerts: int | None = None
    changed: bool | None = None
    job: bool | None = None
    advances: bool = False
    clean: bool | None = None
    proved: bool | None = None
    repeated: bool = False
    unreached: bool = False
    after: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


A, B = Action, Branch
HIGH = (Confidence.HIGH,)
SURE = (Confidence.HIGH, Confidence.MEDIUM)
UNSURE = (Confidence.MEDIUM, Confidence.LOW)
_TRIES = ("swap-and-resume", "group-evict", "code-rollback", "restart-in-place")

TREE: tuple[Move, ...] = (
    Move(B.MACHINE, A.LOCALISE, "locate-corruption",
         "wrong results are suspected and not proved: let others compute the step that went wrong,"
         " then every node what is known, then replay",
         "section 4.2, SDC suspected", UNSURE, faults=(FaultClass.SILENT_CORRUPTION,),
         proved=False),
    Move(B.MACHINE, A.SWAP, "swap-and-resume", "a machine is at fault, evict it", "Fig. 5 [1]",
         SURE, nodes=True),
    Move(B.MACHINE, A.CORDON, "cordon", "a machine is at fault and carries no job, take it out",
         "ours: there is nothing to resume", SURE, nodes=True, job=False),
    Move(B.NETWORK, A.SWAP, "swap-and-resume", "the network alert came back, evict", "Fig. 5 [1]",
         SURE, nodes=True, alerts=NETWORK_ALERTS),
    Move(B.NETWORK, A.CORDON, "cordon", "the network alert came back, take it out",
         "ours: there is nothing to resume", SURE, nodes=True, alerts=NETWORK_ALERTS, job=False),
    Move(B.NETWORK, A.WATCH, "", "one network alert, look again within five minutes",
         "section 4.1", fewer_alerts=NETWORK_ALERTS),
    Move(B.USER, A.ROLLBACK_CODE, "code-rollback", "take back the newest code change",
         "Fig. 5 [2]", changed=True),
    Move(B.USER, A.RESTART, "restart-in-place", "no code change is on record to take back, restart",
         "ours: Fig. 5 [2] rolls back first", unless=("code-rollback",)),
    Move(B.USER, A.FIX_CODE, "",
         "a restart did not help and no code change is on record, fix the code or its settings",
         "ours",
         after=("restart-in-place",), unless=("code-rollback",)),
    Move(B.NUMBERS, A.LOCALISE, "locate-corruption",
         "a machine, the code or the data: let others compute the step that went wrong, then every"
         " node what is known, then replay",
         "section 4.2, NaN; ours: the reattempt is its restart"),
    Move(B.NUMBERS, A.ROLLBACK_CODE, "code-rollback",
         "the numbers went wrong again after the search for a machine, take back the newest code"
         " change", "Fig. 5 [6]", changed=True, after=("locate-corruption",)),
    Move(B.NUMBERS, A.FIX_CODE, "",
         "the search for a machine did not settle it: skip the batch of that step, or go back to"
         " the code before",
         "ours: another node would compute the same", after=("locate-corruption",)),
    Move(B.TOLD, A.RESTART, "restart-in-place", "it was told to stop, start it again", "ours"),
    Move(B.TOLD, A.COLLECT_MORE, "", "it was told to stop again, ask who does that", "ours",
         after=("restart-in-place",)),
    Move(B.SPACE, A.FREE_SPACE, "",
         "free space there, then start the job again; the machine is healthy",
         "ours: the next machine would fill up too"),
    Move(B.STORAGE, A.PAGE_STORAGE, "",
         "ask who runs the storage; neither another node nor another start would help", "ours"),
    Move(B.SWITCH, A.PAGE_NETWORK, "",
         "ask who runs the network; neither another node nor another start would help", "ours"),
    Move(B.CONFIG, A.FIX_CONFIG, "",
         "make it fit the other nodes; neither another node nor another start would help", "ours"),
    Move(B.NOTHING, A.NONE, "", "nothing to do", "ours"),
    Move(B.GROUP, A.RESTART, "restart-in-place",
         "its ranks hang or lag and its hardware looks sound: restart on the same nodes, and swap"
         " it if that comes again",
         "ours: code stops a rank of a sound machine as well", SURE, nodes=True, clean=True),
    Move(B.GROUP, A.SWAP, "swap-and-resume", "one node is named surely, evict it alone",
         "ours: isolate no more than needed", HIGH, nodes=True, clean=False),
    Move(B.GROUP, A.EVICT_GROUP, "group-evict",
         "the suspects share a parallel group, evict the group", "section 5", SURE, nodes=True,
         clean=False),
    Move(B.GROUP, A.SWAP, "swap-and-resume", "the same node again after a restart, evict it alone",
         "ours: isolate no more than needed", HIGH, nodes=True, clean=True, repeated=True),
    Move(B.GROUP, A.EVICT_GROUP, "group-evict",
         "the same suspects again after a restart, evict their group", "section 5", SURE,
         nodes=True, clean=True, repeated=True),
)  # fmt: skip

_ALL_TRIED = Move(
    B.UNCLEAR, A.COLLECT_MORE, "", "all of the tree was tried, look deeper by hand", "ours",
    after=("replay",),
)  # fmt: skip

FALLBACK: tuple[Move, ...] = (
    Move(B.UNCLEAR, A.COLLECT_MORE, "",
         "mend the way from this machine to the nodes (network, VPN, DNS, keys), then look again",
         "ours: what cannot be seen is neither stopped nor swapped", unreached=True),
    Move(B.UNCLEAR, A.WATCH, "", "training advances and is not stopped for this, look again later",
         "ours: a job that runs is not stopped for a guess", advances=True),
    Move(B.UNCLEAR, A.STOP_TIME_CHECKS, "stop-time-checks",
         "no culprit is sure, check every node of the job, stopped", "Fig. 5 [3]", unless=_TRIES),
    Move(B.UNCLEAR, A.STOP_TIME_CHECKS, "stop-time-checks",
         "a restart did not help, check every node of the job", "Fig. 5, A fails again -> C",
         after=_TRIES),
    Move(B.UNCLEAR, A.RESTART, "restart-in-place",
         "all checks were clean, assume a transient fault", "Fig. 5 [5]",
         after=("stop-time-checks",)),
    Move(B.UNCLEAR, A.ROLLBACK_CODE, "code-rollback",
         "a restart did not help, take back the newest code change", "Fig. 5 [6]", changed=True,
         after=("restart-in-place",)),
    Move(B.UNCLEAR, A.LOCALISE, "replay",
         "a restart did not help, replay the job in groups to find the node", "Fig. 5 [8]",
         after=("restart-in-place", "code-rollback")),
    _ALL_TRIED,
    Move(B.UNCLEAR, A.COLLECT_MORE, "",
         "nothing is named surely and there is no job to stop, look deeper", "ours", job=False),
)  # fmt: skip
"""The unclear branch, which every other branch joins once its own moves are used up."""


@dataclass(frozen=True, slots=True)
class Case:
    """What the tree asks of a verdict, or of what logs say.

    Attributes:
        nodes: It names a machine.
        job: There is a job to stop and start.
        advances: The job makes progress; None when that is not known.
        clean: Nothing but what its ranks do speaks against the machines it names.
        unreached: It says that most nodes were not reached.
        proved: A measurement convicts the machines it names, and not words of a log.
    """

    fault: FaultClass
    confidence: Confidence
    nodes: bool
    job: bool = True
    advances: bool | None = None
    clean: bool = False
    unreached: bool = False
    proved: bool = False

    @property
    def goes_on(self) -> bool:
        """The job makes progress, and this is no reason to stop it, or not sure enough."""
        worth = CATALOGUE[self.fault].worth_stopping and self.confidence is not Confidence.LOW
        return self.advances is True and not worth


@dataclass(frozen=True, slots=True)
class IncidentHistory:
    """What is known besides the case.

    Attributes:
        tried: Playbooks that already restarted this job in this incident and did not help.
        alerts: Network alerts on the suspects within five minutes.
        changed: A code change is on record that can be rolled back.
        repeated: One of them restarted it on these very nodes.
        searched: What searches for a machine that computes wrongly found in this job, newest last.
    """

    tried: tuple[str, ...] = ()
    alerts: int = 1
    changed: bool = False
    repeated: bool = False
    searched: tuple[PastSearch, ...] = ()


NO_HISTORY = IncidentHistory()


def branch_of(fault: FaultClass) -> Branch:
    """The branch a class of faults takes."""
    return CATALOGUE[fault].branch


def next_move(case: Case, incident: IncidentHistory = NO_HISTORY) -> Move:
    """The move that comes next."""
    branch = branch_of(case.fault)
    moves = [move for move in TREE if move.branch is branch and _fits(move, case, incident)]
    moves += [move for move in FALLBACK if _fits(move, case, incident)]
    return moves[0] if moves else _ALL_TRIED


def _fits(move: Move, case: Case, incident: IncidentHistory) -> bool:
    tried = set(incident.tried)
    return (
        case.confidence in move.confidence
        and (not move.faults or case.fault in move.faults)
        and (move.nodes is None or move.nodes is case.nodes)
        and (move.job is None or move.job is case.job)
        and (case.job or not move.playbook or move.playbook in WITHOUT_JOB)
        and (move.advances or not move.playbook or not case.goes_on)
        and (not move.advances or case.goes_on)
        and (move.clean is None or move.clean is case.clean)
        and (move.proved is None or move.proved is case.proved)
        and (case.unreached or not move.unreached)
        and _fits_incident(move, incident, tried)
    )


def _fits_incident(move: Move, incident: IncidentHistory, tried: set[str]) -> bool:
    return (
        incident.alerts >= move.alerts
        and (move.fewer_alerts is None or incident.alerts < move.fewer_alerts)
        and (move.changed is None or move.changed is incident.changed)
        and (not move.repeated or incident.repeated)
        and move.playbook not in tried
        and (not move.after or bool(tried & set(move.after)))
        and not tried & set(move.unless)
    )


def describe_tree() -> str:
    """The tree as a table for the documentation; a test compares it with the page."""
    lines = [
        "| branch | sure enough | nodes named | besides | then | source |",
        "|---|---|---|---|---|---|",
    ]
    for move in (*TREE, *FALLBACK):
        sure = "any" if len(move.confidence) == len(Confidence) else "/".join(move.confidence)
        nodes = "yes" if move.nodes else "-"
        act = f"`{move.playbook}`" if move.playbook else f"a person, {move.do}"
        cells = [move.branch, sure, nodes, _besides(move), f"{act}: {move.say}", move.source]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


_MACHINE = {
    None: [],
    True: ["only its ranks speak against the machine"],
    False: ["more than its ranks speaks against the machine"],
}


def _besides(move: Move) -> str:
    facts = [f"only {', '.join(move.faults)}"] if move.faults else []
    facts += [f"{move.alerts} alerts"] if move.alerts else []
    facts += [f"fewer than {move.fewer_alerts} alerts"] if move.fewer_alerts else []
    facts += ["a code change on record"] if move.changed else []
    facts += ["no job"] if move.job is False else []
    facts += ["most nodes are not reached"] if move.unreached else []
    facts += ["the job advances and is not worth stopping"] if move.advances else []
    facts += ["no measurement convicts the machine"] if move.proved is False else []
    facts += _MACHINE[move.clean]
    facts += ["restarted on the same nodes before"] if move.repeated else []
    facts += [f"after {' or '.join(move.after)}"] if move.after else []
    facts += [f"not after {' or '.join(move.unless)}"] if move.unless else []
    return ", ".join(facts) or "-"
