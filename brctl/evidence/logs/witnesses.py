"""Lines of a witness: a detector or a peer that tells that another is silent or gone, never why.

Whoever misses heartbeats, finds a connection closed or a queue flushed did not see what happened
first (decision 0453): causes that rows read in those words fall. One that the line states beside
them, and what hardware and the kernel tell, stays.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, aside
from brctl.model.fault import FaultClass

NODE_SILENT = "witness.node-silent"
PEER_GONE = "witness.peer-gone"
QUEUE_FLUSHED = "witness.queue-flushed"
WORKER_STOPPED = "witness.worker-stopped"
UNCLEAN_BOOT = "witness.unclean-boot"

SIGNATURES = (
    aside(Part.VICTIM, NODE_SILENT,
          ("not responding", "zero bytes were", "heartbeat", "marked dead", "nodediederror", "a remote daemon"),
          "Slurm, Ray, PRRTE, parameter servers: who hears nothing of a node",
          r"\b[Nn]odes? (?P<host>[\w.\-\[\],]+) not responding(?!.{0,20}(?:setting|DOWN|power))|Zero Bytes were transmitted|"
          r"(?:\bagent|\bnode|raylet|worker|task).{0,60}(?:missed too many heartbeats|heartbeat timeout|no heartbeat)|NodeDiedError|\b[Nn]ode .{0,120}\bmarked dead\b|"
          r"lost communication with (?:a )?remote daemon"),
    aside(Part.VICTIM, PEER_GONE,
          ("disconnected", "c10d store", "rendezvousconnectionerror", "mpsclientterminated", "mps client has been", "mps server was", "unhandled timeout error", "endpoint timeout", "stopped sending heartbeats", "is not alive", "is not healthy"),
          "clients of HTTP, c10d, MPS, UCX and JAX whose other end is gone",
          r"ServerDisconnectedError|RemoteDisconnected\(|RemoteProtocolError: Server disconnected|[Cc]onnection to the C10d store has failed|error of type RendezvousConnectionError|"
          r"MpsClientTerminated|MPS (?:client|server) (?:was|has been) terminated|UCX.{0,80}(?:unhandled timeout error(?! with local dev)|[Ee]ndpoint timeout)|\(stopped sending heartbeats\)|\bmesh is not alive|[Ss]tub process .{0,40} is not healthy"),
    aside(Part.VICTIM, QUEUE_FLUSHED, ("syndrome 0x5", "flush_err", "request flushed", "error cqe on cqn"),
          "InfiniBand: what was queued is given back after the queue pair failed, and says nothing of how",
          r"\bsyndrome 0x5\b|WR_FLUSH_ERR|[Ww]ork [Rr]equest [Ff]lushed|Re(?:sponder|questor) error cqe on cqn 0x\w+:?\s*$"),
    aside(Part.VICTIM, WORKER_STOPPED, ("is killed by signal: terminated", "is killed by signal: 15"),
          "PyTorch: a loader's worker that somebody asked to stop",
          r"worker \(pid(?:\(s\))? (?P<pid>\d+)\) is killed by signal: (?:Terminated|15\b)"),
    aside(Part.VICTIM, UNCLEAN_BOOT, "uncleanly shut down",
          "systemd-journald: the machine went down without a shutdown before this boot, and nobody wrote why",
          r"/system[\w@-]*\.journal corrupted or uncleanly shut down"),
)  # fmt: skip

WITNESSES = frozenset(signature.name for signature in SIGNATURES)

GUESSED = frozenset(
    {
        FaultClass.NODE_FAILURE,
        FaultClass.NETWORK_ETH,
        FaultClass.NETWORK_IB,
        FaultClass.NETWORK_LINK,
        FaultClass.NETWORK_SWITCH,
        FaultClass.PREEMPTION_SIGTERM,
        FaultClass.DATA_LOADER,
    }
)
"""Classes that a witness would blame: what its line says of them is no more than its silence."""
