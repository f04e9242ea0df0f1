"""NCCL and RCCL warnings by what they speak of: the families behind some nine hundred texts.

Source: the texts of NCCL 2.18 to 2.32 (init, bootstrap, socket, net_ib, shm, p2p, topology, proxy, RAS).
A warning that only says that something failed stays a victim (`nccl.warn`); what it names decides.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass as F
from brctl.model.fault import Origin

_NCCL = "NCCL source texts, 2.18 to 2.32"
_WARN = "nccl warn"
_SAYS = r"NCCL WARN.{0,200}?"

SIGNATURES: tuple[Signature, ...] = (
    aside(Part.BENIGN, "nccl.ras-port", ("ras/", "ras failed to establish"), "NCCL RAS texts: a second job of the node holds the port of its reports, which no job needs",
          r"\bras/\S+ NCCL WARN .{0,60}(?:bind|listen)\w* failed|RAS failed to establish a client listening socket"),
    aside(Part.BENIGN, "nccl.reregistration", "client reregistration", "ibverbs event names: a subnet manager that asks its ports to subscribe anew", r"[Aa]sync event ?: ?client reregistration"),
    root(F.USER_CODE, "nccl.warn.argument", _WARN, 0.72, _NCCL,
         _SAYS + r"(?:invalid (?:reduction operation|root|type|count|peer)|(?:invalid|unknown) (?:datatype|reduction)|is not a (?:valid )?device pointer|invalid usage of|argument is NULL|Argument \S+ has wrong|Block Dimensions|Grid Dimensions)", origin=Origin.USER),
    root(F.NCCL_CONFIG, "nccl.warn.config", _WARN, 0.8, _NCCL,
         _SAYS + r"(?:Invalid config|Invalid rank requested|[Ii]nvalid (?:value )?\S{0,40}(?: for)? ?NCCL_\w+|NCCL_\w+.{0,60}(?:unknown value|invalid|is too big|not (?:found|supported|valid))|Invalid (?:policy|split|blocking|cga)|Could not open XML|XML (?:Graph|Topology|Parse)|XML parser|(?:topology|graph) file|wrong version \d+, \d+ needed|Specified fused NIC|Too many NICs|cannot be honored)"),
    root(F.NCCL_CONFIG, "nccl.warn.bootstrap", _WARN, 0.74, _NCCL,
         _SAYS + r"(?:Bootstrap Root ?: (?:mismatch|rank \d+ of|localId)|[Bb]ootstrap.{0,40}mismatch|connected to (?:the )?wrong NCCL socket|Wrong socket type|unexpected (?:magic|rank)|duplicate socket index|NCCL_COMM_ID|Invalid NCCL_COMM_ID|no ip interface|No interface found|Bootstrap ?: no)"),
    root(F.NCCL_CONFIG, "nccl.warn.shm", _WARN, 0.86, _NCCL,
         _SAYS + r"(?:shared memory segment|/dev/shm|shm_open|ftruncate|fallocate|Shared memory .{0,40}(?:fail|error))"),
    root(F.HANG_MISMATCH, "nccl.warn.ranks-differ", (_WARN, "nccl error"), 0.8, _NCCL,
         _SAYS + r"(?:mismatch across \d+ ranks|differ from rank|operations? .{0,30}(?:mismatch|differ)|collective.{0,60}(?:mismatch|does not match)|[Mm]ismatched (?:sizes|counts|collective))", origin=Origin.USER),
    root(F.ENVIRONMENT_MISMATCH, "nccl.warn.versions", _WARN, 0.88, _NCCL,
         _SAYS + r"(?:[Mm]ismatched NCCL|NCCL (?:git )?version.{0,40}(?:mismatch|differ)|(?:driver|CUDA|cudart) version.{0,60}(?:older|too old|insufficient|mismatch)|Failed to (?:open|load) lib(?:cuda|nvidia-ml)|lib(?:cuda|nvidia-ml)\S* .{0,40}(?:not found|cannot open)|undefined symbol)"),
    root(F.NETWORK_IB, "nccl.warn.ib-request", _WARN, 0.74, _NCCL,
         _SAYS + r"(?:CQE indicates|Fatal error status in work completion|Failed to (?:create|modify) (?:QP|CQ|SRQ)|(?:create_qp|mlx5dv_\w+)\S* .{0,60}fail|GID info query failed|Unable to (?:query port|open device)|NET/IB.{0,60}(?:error is fatal|unknown event|port error|Port \d+.{0,20}(?:down|not active))|NET/MLX5: Call to \S+ failed)", origin=Origin.UNKNOWN),
    root(F.NCCL_CONFIG, "nccl.warn.rails", _WARN, 0.62, _NCCL,
         _SAYS + r"(?:mismatched physical devices|Unexpected active_mtu|Could not find NIC for rank|traffic ?[Cc]lass|[Nn]o (?:usable )?NIC|Incompatible (?:NIC|MTU|link layer))"),
    root(F.ENVIRONMENT_MISMATCH, "nccl.warn.limits", _WARN, 0.72, _NCCL,
         _SAYS + r"(?:(?:Call to (?:socket|accept|pipe|pthread_create|open)|Thread creation) failed.{0,40}(?:Too many open files|Resource temporarily|Cannot allocate)|Too many connections|setrlimit failed)"),
    root(F.CPU_OOM, "nccl.warn.host-memory", _WARN, 0.66, _NCCL,
         _SAYS + r"(?:Failed to (?:m|c|re)alloc \d+ bytes|malloc.{0,40}(?:failed|returned null)|Cannot allocate memory)"),
    root(F.GPU_OOM, "nccl.warn.gpu-memory", _WARN, 0.84, _NCCL,
         _SAYS + r"(?:[Ff]ailed to (?:CUDA |cuMem)\w* ?alloc|Cuda failure (?:2 )?'out of memory'|cuMem(?:Create|Map|AddressReserve).{0,40}out of memory)"),
    root(F.NVLINK, "nccl.warn.nvlink", _WARN, 0.6, _NCCL,
         _SAYS + r"(?:NVLink .{0,40}(?:error|down|inactive)|P2P not supported between GPU\d+ and GPU\d+)", origin=Origin.UNKNOWN),
    aside(Part.VICTIM, "nccl.ras", ("ras ",), "NCCL RAS texts",
          r"\bRAS (?:socket|connect|init|keep-alive|send stuck|termination stuck|peer|unexpected error|collective .{0,40}timeout|legs?)\b.{0,120}(?:timeout|closed|error|terminat)"),
    aside(Part.VICTIM, "nccl.remote-error", ("remote process error", "is in abort state", "peer closed", "closed before socket", "socket progress error", "ncclremoteerror", "proxy call to rank", "could not receive type from", "socket recv failed", "failed to connect to remote"), _NCCL,
          r"Remote process error|is in abort state|closed before socket|socket progress error|Proxy Call to rank \d+ failed|Could not receive type from localRank|Socket recv failed"),
)  # fmt: skip
