"""NCCL, RDMA completions, process groups and stores: mostly victims, a few roots.

ibv_wc_status (libibverbs, verbs.h): 4 local protection, 5 flushed after another error, 9 invalid
request, 10 remote access, 11 remote operation, 12 retry exceeded (peer silent), 13 receiver not ready.
"""

# ruff: noqa: E501, S108 - a pattern is read whole; the path is only searched for

from brctl.evidence.logs.signature import Part, Signature, aside, healthy, root
from brctl.model.fault import FaultClass, Origin

_NCCL = "NCCL source texts, 2.8 to 2.28"
_IBV = "libibverbs ibv_wc_status"
_C10D = "PyTorch c10d texts"
_PEER = r"(?:peer|remote)\s+(?P<peer>[\w.:\-\[\]]+)(?:<\d+>)?"
_HOST = r"(?:^|\]\s?)(?P<host>[\w.-]+):\d+:\d+ \[\d+\] .*"


_JOIN_ANCHORS = (
    "clients joined", "rendezvoustimeouterror", "to complete rendezvous", "store based barrier",
    "connect/validate to host", "wait timeout for key", "pjrt_client_connect",
)  # fmt: skip

_SUBNET = r"[ :]{0,3}(?:client reregistration|LID change|SM change|P_Key change|port active)"
"""Events of a port that the subnet manager reads anew, and no error of it."""

_JOIN = (
    r"\b\d{1,6}/\d{1,6} clients joined|RendezvousTimeoutError|[Tt]ime(?:d )?out.{0,30}to complete rendezvous|"
    r"[Tt]imed out.{0,60}store based barrier|failed to connect/validate to host (?P<host>[\w.\-\[\]:]+)|"
    r"rendezvous.{0,60}[Ww]ait timeout for key|[Bb]arrier timed out\. (?:Barrier_id|Id): ?PjRT_Client_Connect"
)


def _completion(status: str) -> str:
    return rf"Got completion (?:from {_PEER} )?.*?(?:error|status)[ =](?P<status>{status})\b.*?(?:hca (?P<device>\w+)|$)"


_ROOTS = (
    root(FaultClass.NETWORK_IB, "nccl.ib.retry-exceeded", "got completion", 0.82, _IBV,
         _completion("12|13")),
    root(FaultClass.NETWORK_IB, "nccl.ib.local", "got completion", 0.75, _IBV,
         _completion("[1-46-9]|1[01]|1[4-9]|2[0-2]"), origin=Origin.UNKNOWN),
    root(FaultClass.NETWORK_IB, "nccl.ib.flushed", "got completion", 0.55, _IBV, _completion("5"),
         origin=Origin.UNKNOWN),
    root(FaultClass.NETWORK_IB, "nccl.ib.port-error", ("async event", "async fatal event"), 0.8, _NCCL + ": who says more of the port, its cable or its switch, decides",
         r"(?:" + _HOST + r")?NET/IB ?: ?(?P<device>[\w:]+)?.{0,40}async (?:fatal )?event(?: on port)? ?: ?port error", part=Part.GENERIC),
    root(FaultClass.NETWORK_IB, "nccl.ib.async-event", ("async event", "async fatal event"), 0.9, _NCCL,
         r"(?:" + _HOST + r")?NET/IB ?: ?(?P<device>[\w:]+)?.{0,40}Got async (?:fatal )?event(?!" + _SUBNET + r"| ?: ?port error)|"
         r"async fatal event on (?!QP|port ?: ?port error)|Got async event(?!" + _SUBNET + r"| ?: ?port error)"),
    root(FaultClass.NETWORK_SWITCH, "nccl.ib.subnet-event", "async event", 0.5, "ibverbs event names: what a subnet manager does to a port that works",
         r"(?:" + _HOST + r")?NET/IB ?: ?(?P<device>[\w:]+)?.{0,40}Got async event" + _SUBNET, part=Part.GENERIC),
    root(FaultClass.NETWORK_IB, "nccl.ib.async-qp", "async fatal event on qp", 0.86, _NCCL,
         r"(?:" + _HOST + r")?NET/IB ?: ?(?P<device>[\w:]+) async fatal event on QP", origin=Origin.UNKNOWN),
    root(FaultClass.NETWORK_IB, "ib.qp-no-path", "to modify qp", 0.74, "rdma-core examples and libraries made after them",
         r"[Ff]ailed to modify QP(?: to \w+)?: (?:Connection timed out|No route to host|Network is unreachable)", origin=Origin.INFRA),
    root(FaultClass.NCCL_CONFIG, "nccl.ib.modify-qp", "ibv_modify_qp", 0.74, _NCCL + ": an address or GID that leads nowhere",
         r"ibv_modify_qp failed .{0,30}(?:\b110\b|timed out|\b113\b|No route|\b101\b|unreachable)"),
    root(FaultClass.NCCL_CONFIG, "nccl.ib.modify-qp-argument", ("ibv_modify_qp", "ibv_query_gid"), 0.74, _NCCL + ": a GID, path size or service level that the port does not take",
         r"NCCL.{0,40}(?:ibv_modify_qp|ibv_query_gid) failed .{0,30}(?:\b22\b|\b61\b|Invalid argument|No data available)", origin=Origin.UNKNOWN),
    root(FaultClass.DRIVER_FIRMWARE, "verbs.gpu-memory", "ibv_reg_mr", 0.78, _IBV + ": a GPU's memory that the adapter may not reach, for want of peermem or dma-buf",
         r"ibv_reg_mr.{0,120}Bad address", origin=Origin.INFRA),
    root(FaultClass.NETWORK_IB, "nccl.ib.modify-qp-device", "ibv_modify_qp", 0.74, _NCCL + ": the port went away",
         r"ibv_modify_qp failed .{0,30}(?:\b19\b|No such device|\b5\b|Input/output|\b16\b|busy)", origin=Origin.INFRA),
    root(FaultClass.NETWORK_IB, "nccl.ib.call",
         ("call to ibv_", "ibv_modify_qp", "ibv_poll_cq", "ibv_post_send", "ibv_reg_mr", "ibv_create_qp",
          "ibv_open_device"), 0.72, _NCCL,
         r"Call to (?:wrap_)?ibv_\w+ failed|ibv_\w+ (?:failed|error|returned)", origin=Origin.UNKNOWN),
    root(FaultClass.NCCL_CONFIG, "nccl.ib.memlock",
         ("cannot allocate memory", "memlock", "max locked memory", "ibv_reg_mr", "create qp", "too many qps"), 0.76, _NCCL + " and libfabric: locked memory, or what an adapter has of queues",
         r"ibv_(?:reg_mr|create_\w+).*Cannot allocate memory|memlock(?!=-1)|max locked memory(?!.*unlimited)|\b(?:register MR|create (?:\w+ )?(?:CQ|QP))\b.{0,80}(?:Cannot allocate memory|\[-12\]|too many QPs)"),
    root(FaultClass.NETWORK_IB, "ucx.transport", ("ucx  error", "ucx error", "ib_mlx5", "transport retry count", "retry counter exceeded", "remote access error", "rdma_cm_event"), 0.75,
         "UCX and verbs texts",
         r"UCX\s+ERROR(?!\s+(?:tcp|connect\(|no active|no usable|process_vm|shm|mm ep|open\(|ibv_query_gid|Unable to find specified pkey|cu[A-Z]|unable to allocate cuda|multi-node NVLINK|[Ff]ailed to write)|.{0,80}(?:error handler called|peer failure handler|is not supported|No space left|Shared memory)).{0,120}|ib_mlx5.{0,40}(?:error|Transport retry)|RDMA_CM_EVENT_\w*(?:ERROR|UNREACHABLE|REJECTED)|"
         r"[Tt]ransport retry count(?:er)? exceeded|Remote access error on mlx5"),
    root(FaultClass.NETWORK_ETH, "ofi.efa", ("net/ofi", "libfabric", "efa_", "[ofi"), 0.7,
         "aws-ofi-nccl texts",
         r"^(?!.*Transport endpoint is not connected).*?(?:NET/OFI.{0,100}(?:error|fail|RC: -|completed with)|libfabric.{0,60}(?:error|fail)|\[OFI.*ERR)",
         origin=Origin.UNKNOWN),
    root(FaultClass.NCCL_CONFIG, "nccl.shm",
         ("posix_fallocate", "shared memory segment", "/dev/shm", "nccl-shm", "shm_open",
          "size of /dev/shm"), 0.9, _NCCL,
         r"posix_fallocate failed|Error while (?:creating|attaching).{0,20}shared memory segment|"
         r"(?:nccl-shm|/dev/shm/nccl).{0,80}(?:fail|error|No space)|shm_open.{0,60}fail|"
         r"unable to (?:open|create) shared memory object.{0,60}nccl"),
    root(FaultClass.NCCL_CONFIG, "nccl.duplicate-gpu", "duplicate gpu detected", 0.95, _NCCL,
         r"Duplicate GPU detected\s*:?\s*rank (?P<rank>\d+)(?: and rank (?P<rank2>\d+))?"),
    root(FaultClass.NCCL_CONFIG, "nccl.wrong-peer",
         ("wrong magic", "wrong type", "message truncated", "mismatched nccl", "unexpected magic",
          "magic mismatch", "ncclinvalidusage", "mismatched net"), 0.82, _NCCL,
         r"wrong (?:type|magic) \S+ != \S+|(?:NCCL|socket|bootstrap).{0,200}(?:wrong magic|magic mismatch)|Message truncated : received|"
         r"ncclInvalidUsage|invalid usage|version mismatch.{0,30}NCCL|NCCL.{0,40}version mismatch"),
    root(FaultClass.NCCL_CONFIG, "nccl.no-interface",
         ("no interface found", "no socket interface", "bootstrap : no", "network not found",
          "could not find any interface", "failed to find network", "failed to initialize any net",
          "no eligible network", "unable to find address for", "could not find real path of",
          "nccl_socket_ifname", "gloo_socket_ifname",
          "net/socket : no"), 0.85, _NCCL,
         r"(?:Bootstrap|NET/Socket) ?: no (?:socket )?interface|no socket interface found|[Nn]etwork \S+ not found|"
         r"[Cc]ould not find any interface|Failed to (?:find network|initialize any NET)|No eligible network|"
         r"[Uu]nable to find address for|(?:NCCL|GLOO)_SOCKET_IFNAME.{0,60}(?:not|invalid|no match|fail)|"
         r"Could not find real path of"),
    root(FaultClass.NCCL_CONFIG, "nccl.invalid-argument",
         ("ncclinvalidargument", "invalid argument", "nccl_ib_gid_index", "gid index", "gid table",
          "nccl_topo_file", "nccl warn xml", "nccl warn could not find topo", "invalid nccl_", "invalid value", "nccl_algo"), 0.72, _NCCL,
         r"ncclInvalidArgument|NCCL WARN.{0,80}invalid argument|NCCL_\w+.{0,60}(?:invalid|unsupported|not supported)|"
         r"[Ii]nvalid (?:value for )?NCCL_\w+|gid (?:index|table).{0,60}(?:fail|invalid|error)|"
         r"NCCL WARN.{0,80}(?:topology|XML).{0,60}(?:fail|error|invalid|mismatch)"),
    root(FaultClass.NCCL_CONFIG, "nccl.address-family", ("af_inet", "address family not supported"), 0.86, "NCCL socket.cc and socket.h",
         r"with family \d+ is neither AF_INET|Socket creation failed ?: ?Address family not supported|bootstrap\S*.{0,60}Address family not supported"),
    aside(Part.CONTEXT, "nccl.virtual-interface", ("net/socket : using", "net/socket: using"), _NCCL,
          r"NET/Socket ?: ?Using .*\](?P<value>veth\w*|docker\w*|br-\w+|virbr\w*|cni\w*|flannel\S*?|cali\w+):", sets="virtual-interface"),
    root(FaultClass.NCCL_CONFIG, "nccl.connect-virtual", ("connection refused", "connection timed out", "no route to host"), 0.82, _NCCL,
         r"NCCL (?:INFO|WARN).{0,120}(?:Connection refused|Connection timed out|No route to host)", when=(("virtual-interface", "*"),)),
    root(FaultClass.NCCL_CONFIG, "nccl.no-peer-access", "peer access is not supported", 0.8, "cudaErrorPeerAccessUnsupported (217)",
         r"peer access is not supported between these two devices"),
    root(FaultClass.NVLINK, "nccl.p2p-disabled", "p2p is disabled between", 0.87, "NCCL paths.cc",
         r"P2P is disabled between NVLINK connected GPUs (?P<gpu>\d+) and \d+"),
    root(FaultClass.NCCL_CONFIG, "nccl.no-ib-device", "no device found", 0.6, _NCCL, r"NCCL WARN NET/IB ?: ?No device found"),
    root(FaultClass.NCCL_CONFIG, "nccl.bond-listed", "net/ib : using", 0.62, _NCCL,
         r"NET/IB ?: ?Using .*\[\d+\]mlx5_\d+:1/IB.*mlx5_bond_\d+:1/RoCE"),
    root(FaultClass.NCCL_CONFIG, "nccl.peermem", ("gdr", "nvidia-peermem", "nv_peer_mem"), 0.45, _NCCL,
         r"(?:GPU Direct RDMA|GDR).{0,40}(?:Disabled|not available|failed)"),
    root(FaultClass.NVLINK, "nccl.p2p", ("cudaipcopenmemhandle", "nccl warn p2p"), 0.45, _NCCL,
         r"NCCL WARN.{0,60}(?:cudaIpcOpenMemHandle|P2P).{0,60}(?:fail|error)", origin=Origin.UNKNOWN),
    root(FaultClass.NETWORK_ETH, "nccl.connect",
         ("connection refused", "no route to host", "network is unreachable", "host is unreachable",
          "connection timed out", "connect to", "connect returned", "exceeded error retry count"), 0.62, _NCCL,
         r"(?:NCCL (?:WARN|INFO)|socketPollConnect|socketStartConnect|Call to connect|Net\s*:\s*Connect to|"
         r"NCCL error).{0,120}?(?:to (?P<peer>[\w.:\-]+)(?:<\d+>)? )?.{0,60}"
         r"(?:Connection refused|No route to host|Network is unreachable|Host is unreachable|Connection timed out|"
         r"exceeded error retry count)", origin=Origin.INFRA),
    root(FaultClass.NETWORK_ETH, "net.unreachable",
         ("no route to host", "network is unreachable", "host is unreachable",
          "temporary failure in name resolution", "name or service not known",
          "could not resolve host", "nodename nor servname", "no address associated with hostname",
          "failed to resolve", "getaddrinfo", "dial tcp: lookup"), 0.68,
         "errno and getaddrinfo texts",
         r"No route to host|Network is unreachable|Host is unreachable|(?:Temporary failure in )?name resolution|"
         r"Name or service not known|[Cc]ould not resolve host|No address associated with hostname|"
         r"getaddrinfo.{0,60}(?:fail|error)|dial tcp: lookup \S+", part=Part.GENERIC, origin=Origin.INFRA),
    root(FaultClass.NETWORK_ETH, "store.connect-timeout",
         ("client socket has timed out", "the client socket has failed", "failed to connect to any addresses", "tcpstore"), 0.6, _C10D + ": a line that names the connection that failed",
         r"client socket has (?:timed out|failed).{0,100}connect to \(?(?P<peer>[\w.:\-\[\]]+)|"
         r"TCPStore(?!\.cpp).{0,80}(?:timed? ?out|failed to connect|Connection refused)|"
         r"failed to connect to any addresses", origin=Origin.UNKNOWN),
    root(FaultClass.NCCL_CONFIG, "store.join-timeout", _JOIN_ANCHORS, 0.6, _C10D + ": not all ranks came; who waited names no machine", _JOIN, part=Part.GENERIC),
    root(FaultClass.UNKNOWN, "store.rejoin-timeout", _JOIN_ANCHORS, 0.64, _C10D + ": the ranks had a communicator; why one did not come back stands elsewhere", _JOIN,
         part=Part.GENERIC, when=(("communicator", "*"),)),
    aside(Part.CONTEXT, "nccl.communicator", "init complete", _NCCL, r"NCCL INFO .{0,160}Init COMPLETE", sets="communicator"),
    root(FaultClass.USER_CODE, "store.port-in-use",
         ("address already in use", "eaddrinuse", "errno: 98", "port is already"), 0.8, "errno 98",
         r"[Aa]ddress already in use(?!.{0,20}\bretrying with)|EADDRINUSE|errno: 98\b"),
    root(FaultClass.HANG_MISMATCH, "c10d.mismatch",
         ("mismatch between collectives", "collective mismatch", "mismatched collective", "didn't join collective", "did not join", "uneven inputs",
          "detected mismatch", "collectives mismatch", "shape mismatch between ranks",
          "some ranks did not", "not all ranks", "desync", "expected collective",
          "do not match across ranks", "monitoredbarrier", "verify_params_across_processes"), 0.9,
         "PyTorch TORCH_DISTRIBUTED_DEBUG=DETAIL, desync debug",
         r"[Mm]ismatch between collectives(?:.*Rank (?P<rank>\d+))?|[Mm]ismatched collective|didn't join collective|collectives? mismatch|"
         r"ranks? \[?(?P<ranks>[\d, ]+)\]? (?:failed to pass monitoredBarrier|.{0,40}did(?:n't| not) join)|"
         r"^(?!.*\bno mismatch).*desync(?:ed|hroni[sz]\w+)?(?! debug).{0,60}(?:rank|collective)|monitoredBarrier.{0,80}(?:fail|timed out)|"
         r"Rank (?P<culprit_rank>\d+) failed to pass monitoredBarrier|"
         r"(?:different|inconsistent) (?:sequence|order|number|shapes?) of collectives?|do not match across ranks|"
         r"param\w*.{0,40}(?:appears to not match|inconsistent|different).{0,40}across (?:processes|ranks)|"
         r"in another rank:? .*(?:differ|mismatch)|(?:\b(?:detected|got|received|have|has) uneven inputs\b|\buneven inputs\b(?=.{0,40}\bexhausted))(?!.{0,40}\bJoin\b)", origin=Origin.USER),
    root(FaultClass.HANG_MISMATCH, "c10d.sizes-differ",
         ("preamble.length", "op.nbytes", "mismatched all", "mismatched reduce", "mismatched broadcast", "mismatched tensor", "order differs"), 0.82,
         "Gloo: a peer sent another number of bytes than was asked for; texts of framework checks",
         r"preamble\.(?:length|nbytes) <= \S*nbytes|[Mm]ismatched (?:all\w*|reduce\w*|broadcast|tensor) (?:sizes?|shapes?)\b.{0,40}\brank|collective order differs",
         origin=Origin.USER),
    root(FaultClass.HANG_MISMATCH, "horovod.stalled",
         ("subset of ranks", "stalled ranks", "stalled tensor", "missing ranks"), 0.72,
         "Horovod's stall inspector: some ranks submitted a tensor, others did not",
         r"submitted to be reduced.{0,60}subset of ranks|[Ss]talled (?:ranks|tensors?):|[Mm]issing ranks:", origin=Origin.USER),
    root(FaultClass.USER_CODE, "ddp.unfinished-reduction",
         "expected to have finished reduction", 0.84,
         "PyTorch DDP reducer: parameters that took no part in the loss"),
    root(FaultClass.USER_CODE, "ddp.ready-twice", "expected to mark a variable ready only once", 0.84,
         "PyTorch DDP reducer: a parameter that is used twice", origin=Origin.USER),
    root(FaultClass.STRAGGLER_SLOW, "straggler.times-slower", "slower than", 0.78, "what a comparison of ranks says",
         r"\b(?:rank|node|worker|host|gpu) ?(?P<rank>\d+)\b.{0,30}\b\d+(?:\.\d+)?x slower than (?:the )?(?:median|mean|average|others?|rest|fleet)"),
    root(FaultClass.STRAGGLER_SLOW, "straggler.words",
         ("straggler", "slow rank", "slow node", "slowest rank", "fail-slow", "slow worker",
          "is slower than"), 0.85, "DLRover, Megatron and NVRx straggler reports",
         r"stragglers?(?: are| is|:| detected| found| ranks?)[^\[\d\n]{0,30}\[?(?P<node_rank>\d+)|"
         r"node is a straggler|straggler.{0,30}(?:detected\b|exits|flagged|(?:GPU|rank)s?[ =:#]{1,2}\d)|"
         r"(?:slow|slowest) (?:rank|node|worker)s?\D{0,20}(?P<rank>\d+)|"
         r"rank (?P<slow_rank>\d+).{0,40}slower than|fail-slow", origin=Origin.INFRA),
    root(FaultClass.NODE_FAILURE, "dlrover.node-check",
         ("network is breakdown", "node status are", "node check failed", "fault nodes are",
          "node is broken", "nodes are fault"), 0.88, "DLRover network check",
         r"node network is breakdown|node status are \{.*?(?P<node_rank>\d+): False|[Nn]ode check failed|"
         r"[Ff]ault nodes? (?:are|is):? \[(?P<fault_nodes>\d[\d, ]*)\]|node is broken"),
)  # fmt: skip

_VICTIMS = (
    aside(Part.VICTIM, "c10d.watchdog",
          ("watchdog caught collective", "watchdog thread terminated", "watchdog got stuck",
           "heartbeat monitor timed out", "collective operation timeout", "signal dumping", "flight recorder dump signal"), _C10D,
          r"Watchdog caught collective operation timeout.*?SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+)"
          r".*?ran for (?P<ran_ms>\d+) milliseconds|[Ww]atchdog (?:thread terminated|caught|got stuck)|"
          r"[Hh]eartbeat [Mm]onitor timed out|collective operation timeout|to signal dumping|flight recorder dump signal"),
    aside(Part.VICTIM, "nccl.peer-closed",
          ("closed by remote peer", "connection closed by", "connection reset by peer", "broken pipe",
           "remote process exited", "reset by remote peer", "ncclremoteerror", "remote side unexpectedly closed",
           "connection closed by peer", "lost connection", "peer closed"), _NCCL,
          r"(?:Connection )?closed by remote peer (?P<peer>[\w.:\-\[\]]+)|Connection closed by peer \[?(?P<peer2>[\w.:]+)|"
          r"[Cc]onnection reset by (?:remote )?peer|[Bb]roken pipe|remote process exited|ncclRemoteError|"
          r"lost connection|peer closed"),
    aside(Part.VICTIM, "c10d.store-lost",
          ("recvvalue failed", "failed to recv", "sendbytes failed", "recvbytes", "store is no longer",
           "failed to check the \"should dump\"", "should dump", "tcpstore server has shut down",
           "connection was likely closed", "failed to send"), _C10D,
          r"recvValue failed|failed to recv, got 0 bytes|sendBytes failed|should dump|Connection was likely closed|"
          r"TCPStore server has shut down"),
    aside(Part.VICTIM, "nccl.system-error",
          ("ncclsystemerror", "unhandled system error", "ncclinternalerror", "internal error",
           "distbackenderror", "nccl communicator was aborted", "nccl communicator encountered error",
           "some nccl operations have failed", "taking the entire process down", "unhandled cuda error",
           "communicator encountered a fatal error", "nccl error in", "commdestroysync", "commabort",
           "distneterror", "distnetworkerror", "diststoreerror", "ncclunhandledcudaerror"), _NCCL,
          r"nccl(?:System|Internal|UnhandledCuda)Error|unhandled (?:system|cuda) error|DistBackendError|"
          r"NCCL communicator (?:was aborted|encountered)|Some NCCL operations|taking the entire process down|"
          r"encountered a fatal error|NCCL error in|commDestroySync|DistNetworkError|DistStoreError"),
    aside(Part.VICTIM, "nccl.return-path", (".cc:", ".cu:", ".h:"), _NCCL,
          r"NCCL INFO \S+\.(?:cc|h|cu):\d+ -> [1-7]\b"),
    aside(Part.VICTIM, "nccl.warn", "nccl warn", _NCCL),
    aside(Part.VICTIM, "gloo.broken",
          ("gloo/transport", "gloo connectfullmesh", "application timeout caused pair closure"), "Gloo texts",
          r"gloo/transport/\S+\].{0,60}(?:Connection closed|Read error|Timed out|Broken pipe|timeout|reset)"
          r"(?:.*\[(?P<peer>[\w.:]+)\])?|connectFullMesh failed|pair closure"),
    aside(Part.VICTIM, "barrier.timeout",
          ("timed out waiting", "wait timeout", "barrier timed out", "timeout waiting for", "timed out in barrier",
           "all_reduce timed out", "collective timed out", "operation timed out", "socket timeout"), _C10D,
          r"Timed out (?:waiting \d+ms|waiting for)|[Ww]ait timeout|[Bb]arrier timed out|[Tt]imeout waiting for|"
          r"(?:collective|all_?reduce|operation) timed out|[Ss]ocket [Tt]imeout"),
)  # fmt: skip

_OVER = (
    healthy("over.nccl-connect", ("init complete", "connected all rings"), 0.6, _NCCL + ": the peers that were tried again",
            r"NCCL INFO .{0,160}(?:Init COMPLETE|Connected all rings)", settles=("nccl.connect", "nccl.connect-virtual")),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_ROOTS, *_VICTIMS, *_OVER)
