"""Network adapters, links, switches and the subnet manager.

Source: drivers/net/ethernet and drivers/infiniband of Linux 4.x to 6.x (mlx5, mlx4, bnxt, ice, i40e, ixgbe,
igb, tg3, hns, ena, efa, hfi1, irdma), net/core and bonding; opensm, ibdiagnet, ibqueryerrors and
perfquery; Fabric Manager; switch operating systems.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, aside, healthy, root
from brctl.model.fault import FaultClass, Origin

_NIC = "Linux network adapter drivers"
_NET = "Linux net core, bonding and iproute2"
_IB = "opensm, ibdiagnet, ibqueryerrors and perfquery"
_SWITCH = "switch operating systems and fabric management"
_ETH_NAME = r"(?:en[opsx]\w+|eth\d+\w*|net\d+|bond\d+\w*|hsn\d+|em\d+|p\d+p\d+|roce\w*|lan\d+)"

_ADAPTERS = (
    root(FaultClass.NETWORK_ETH, "nic.ethernet-dead", ("mlx5e", "bnxt_en", "i40e", "ice ", "ixgbe", "igb", "tg3", "ena ", "hns3", "be2net", "qede", "cxgb4", "e1000e", "r8169", "sfc ", "nfp ", "enic", "efa "), 0.84, _NIC,
         r"\b(?:bnxt_en|i40e|iavf|ice|ixgbe|igb|tg3|ena|hns3|be2net|qede|cxgb4|e1000e|r8169|sfc|nfp|enic|gve)\b.{0,120}(?:[Tt]x (?:[Uu]nit )?[Hh]ang|[Rr]eset adapter|adapter reset|PCIe link lost|firmware (?:fatal|reset(?! request success)|hang|not responding|error)|[Ff]atal error|MMIO .{0,20}fail|DMA .{0,30}timed out|[Uu]nrecoverable|[Ff]ailed to (?:reset|recover|init|start)|hwrm .{0,60}(?:error 0x(?:1|b|f|fffe)\b|timeout|timed out|no response)|device removed|[Aa]dapter removed|dead|TX timeout|wasn't completed on time|(?:driver issue detected|malicious)(?!.*\b(?:on VF|VF \d+ MAC|PF \d+ VF))|ECC error)", physical=True),
    root(FaultClass.NETWORK_IB, "nic.health", ("health compromised", "health issue observed", "reached miss count", "assert_var", "ext_synd", "firmware internal error", "fatal error on port", "fatal event", "handling bad device", "fatal state", "in error state", "sick"), 0.82, _NIC,
         r"device's health compromised|[Hh]ealth issue observed|reached miss count|firmware internal error|device is in (?:error|internal error)|NIC (?:IFC )?still \d+ after|mlx5_.{0,80}(?:in fatal|fatal error|sick|reset requested|handling bad device)", physical=True),
    root(FaultClass.NETWORK_ETH, "nic.health-ethernet", ("health compromised", "reached miss count", "ext_synd"), 0.86, _NIC,
         r"device's health compromised|reached miss count|ext_synd", when=(("nic-kind", "*"),), physical=True),
    aside(Part.CONTEXT, "nic.is-ethernet", ("mlx5e", "renamed from eth", "ethernet"), _NIC, r"(?i:(?P<value>MLX5E)): |(?P<name>en\w+): renamed from eth", sets="nic-kind"),
    root(FaultClass.DRIVER_FIRMWARE, "nic.command-failed", ("bad parameter", "syndrome", "bad resource", "internal err", "cmd_out_err", "cmd_work_handler", "cq_err", "qplib", "failed to init", "probe of", "probe with driver"), 0.66, _NIC,
         r"mlx5_cmd_(?:out_err|check).{0,160}(?:failed|status)|cq_err(?:or)?_event|failed to allocate command entry|QPLIB: cmdq\[\S+ status 0x[1-9a-f]|mlx5_core.{0,60}(?:init_one|load_one|mlx5_\w+_init).{0,60}failed|(?:(?<!\bioapic: )(?<!i2c: )(?<!\btpm_tis: )(?<!\brtc_cmos: )(?<!\bACPI: )probe of \S+ failed|probe with driver (?:mlx5_core|mlx4_core|bnxt_en|i40e|ice|irdma|efa|hfi1) failed) with error -\d+", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "nic.firmware-start", ("fw initialization", "pre-initializing", "enable hca failed", "ddp package", "entering safe mode", "firmware over"), 0.8, _NIC,
         r"Waiting for FW initialization, timeout|pre-initializing state, aborting|enable hca failed|DDP package .{0,40}(?:not found|could not|error|invalid)|Entering Safe Mode", physical=True),
    root(FaultClass.PCIE, "nic.off-the-bus", ("pci reads still not working", "pcie link lost", "device removed from pci", "hw lost", "pci channel offline"), 0.87, _NIC,
         r"PCI reads still not working|PCI channel offline|PCIe link lost, device now detached|[Dd]evice removed from PCI", physical=True,
         follows=("mlx5.dead", "nic.health", "nic.health-ethernet", "host.kernel.nic_dead")),
    root(FaultClass.NETWORK_ETH, "nic.any", ("bnxt_en", "i40e", "iavf", "ice ", "ixgbe", "igb", "igc ", "tg3", "ena ", "efa ", "hns3", "be2net", "qede", "cxgb4", "e1000e", "r8169", "sfc ", "nfp ", "enic ", "gve ", "atlantic", "ionic", "mana ", "virtio_net", "vmxnet3"), 0.58, _NIC + ": any adapter that failed",
         r"\b(?:bnxt_en|i40e|iavf|ice|ixgbe|igb|igc|tg3|ena|efa|hns3|be2net|qede|cxgb4|e1000e|r8169|sfc|nfp|enic|gve|atlantic|ionic|mana|virtio_net|vmxnet3) (?:[0-9a-f]{4}:)?[\w:.]+:? (?!.{0,80}(?:AER|PCIe Bus Error|error status/mask|NVM image|Safe Mode|SR-IOV|not supported|EEE|PTP|PTM|PHC|DCB|TS query|tc_\w*flow|hwrm req_type|same switch|\bVFs?\b|vlan|promisc|mac filter|\bRSS\b|\bTCs?\b|\bETS\b|UDP port|flow director|ignoring)).{0,120}\b(?:failed|failure|error|timed? ?out|timeout|tx_timeout|hang|hung|(?<!non-)fatal|unrecoverable|resetting|starting reset|[Rr]eset the device|lost tx|dead|aborted|malicious|FW Down|device stopped)\b(?! ?[:=]? ?0\b)", part=Part.GENERIC),
    root(FaultClass.NETWORK_ETH, "nic.no-recovery-ethernet", "failed to recover", 0.87, _NIC + ": the function that has an Ethernet interface",
         r"mlx5_core \S{7,14}:? (?P<device>en[opsx]\w+|eth\d+): Failed to recover", physical=True),
    root(FaultClass.NETWORK_IB, "nic.qib", "qib", 0.92, _NIC, r"\bqib\d*: .{0,40}(?:Fatal Hardware Error|SDMA error)", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "nic.flash-tool", ("mlxfwreset", "mlxburn", "flint", "mlxconfig"), 0.78, "MFT tools: a firmware that was not loaded or burnt",
         r"\b(?:mlxfwreset|mlxburn|flint|mlxconfig)\b.{0,20}-E- "),
    root(FaultClass.NETWORK_IB, "nic.verbs", ("dump_cqe", "cqe error", "local qp catastrophic", "catastrophic", "port_error", "sm_lid", "hfi1", "opa", "ib_port", "qp event", "cq error", "mlx4_core", "irdma"), 0.8, _NIC,
         r"mlx[45]\w*.{0,60}(?:dump_cqe|CQE error|CQ error|catastrophic|Internal error detected|lost interrupt)|hfi1.{0,100}(?:fatal|freeze|LNI fail|link (?:down|failed)|SPC|offline)|irdma.{0,60}(?:fail|error)|local catastrophic error|ib_\w+: .{0,60}port .{0,20}(?:error|down)", physical=True),
    root(FaultClass.NETWORK_IB, "nic.omni-path", ("hfi1",), 0.845, _NIC, r"\bhfi1\b.{0,60}[Ll]ink (?:is )?[Dd]own", physical=True),
    root(FaultClass.NETWORK_IB, "net.watchdog-ib", ("netdev watchdog", "transmit timeout", "transmit queue"), 0.87, _NET,
         r"NETDEV WATCHDOG: (?P<device>ib\w[\w.]*)|(?P<device2>ib\d[\w.]*): transmit timeout", physical=True),
    root(FaultClass.NETWORK_ETH, "net.watchdog-ethernet", ("netdev watchdog", "transmit queue", "tx timeout", "tx hang"), 0.84, _NET,
         r"NETDEV WATCHDOG: (?P<device>(?!ib\d)\S+)", physical=True),
    root(FaultClass.NETWORK_ETH, "net.errors-growing", ("rx_crc_errors", "rx_symbol_err", "rx_discards_phy", "tx_errors", "rx_out_of_buffer", "prio", "pause", "retrans"), 0.5, "ethtool -S and /proc/net",
         r"\b(?:rx_crc_errors(?:_phy)?|rx_symbol_err_phy|rx_pcs_symbol_err_phy|rx_in_range_len_errors_phy)\s*[:=]\s*[1-9]\d{2,}|\brx_prio\d_pause\s*[:=]\s*[1-9]\d{6,}", physical=True),
    root(FaultClass.NETWORK_IB, "rdma.retries", ("out_of_sequence", "roce_slow_restart", "ack_timeout_err", "packet_seq_err", "rnr_nak_retry", "adp_retrans"), 0.5, "RDMA hardware counters",
         r"\b(?:out_of_sequence|roce_slow_restart|local_ack_timeout_err|packet_seq_err|rnr_nak_retry_err|roce_adp_retrans\w*)\s*[:=]\s*[1-9]\d{2,}", physical=True),
    root(FaultClass.THERMAL_POWER, "nic.hot", ("high temperature", "temperature is too high", "over temperature", "overtemp", "thermal event"), 0.8, _NIC,
         r"(?:mlx5_core|bnxt_en|i40e|ice|nic|transceiver|module).{0,80}(?:[Tt]emperature (?:is )?(?:too high|above|exceeded|critical)|[Oo]ver[- ]?[Tt]emp|[Tt]hermal (?:shutdown|event|stop))", physical=True),
)  # fmt: skip

_LINKS = (
    root(FaultClass.NETWORK_IB, "ib.transmit-timeout", "netdev watchdog", 0.82, "Linux network watchdog on an IPoIB interface",
         r"NETDEV WATCHDOG: ib\w+", physical=True),
    root(FaultClass.NETWORK_ETH, "net.tables-full", ("nf_conntrack", "table overflow", "syn flooding", "neighbor table", "neighbour", "out of memory -- consider", "pfc"), 0.8, "Linux netfilter, neighbour and TCP texts",
         r"nf_conntrack: .{0,20}table full|neigh(?:bor|bour) table overflow|TCP: out of memory -- consider|^(?!.*(?:orchagent|swss|syncd)\b).*\bPFC\w*\b.{0,40}\bstorm\b(?! restored| detected/)"),
    root(FaultClass.NETWORK_SWITCH, "switch.pfc-storm", "pfc", 0.8, _SWITCH, r"\b(?:orchagent|swss|syncd)\b.{0,80}\bPFC\w*\b.{0,40}\bstorm\b(?! restored)", physical=True),
    root(FaultClass.NETWORK_IB, "ib.ipoib", ("multicast join failed", "rdma_resolve", "addr_error", "route_error", "subnadm", "port state changed to down", "ib_core", "pkey"), 0.76, "IPoIB, RDMA CM and SA texts",
         r"ib\d+\S*: (?:multicast join failed|failed to)|rdma_resolve_(?:addr|route).{0,40}(?:fail|timed out|error)|RDMA_CM_EVENT_(?:ADDR|ROUTE)_ERROR|[Pp]ort \d+ state changed to DOWN"),
    root(FaultClass.NETWORK_LINK, "net.link-down", ("link is down", "link down", "link status definitely down", "link status down", "lost carrier", "no carrier", "link becomes down", "nic link is down", "link up: false", "down (ib)", "link failure", "link flap", "lower layer down", "lowerlayerdown", "no-carrier", "link_state"), 0.83, _NET,
         r"(?P<sensor3>(?<![\w.-])[\w.-]{1,64}: \(slave (?P<device3>[\w.-]+)\)): link status definitely down|link status (?:definitely )?down for interface (?P<device2>(?P<sensor2>[\w.-]+))|\b(?P<device>(?P<sensor>" + _ETH_NAME + r"|ib\d+\w*|ibp\w+|mlx\d_\d+))\b.{0,80}(?:[Ll]ink (?:is )?[Dd]own|[Ll]ost carrier|(?<!<)[Nn]o carrier|link flap|(?<!detect )[Ll]ink [Ff]ailure)", physical=True),
    root(FaultClass.NETWORK_LINK, "link.counters", ("link_down_events", "symbol error rate", "ber exceeds", "ber above"), 0.7, "ethtool -S, UFM and ibdiagnet",
         r"link_down_events(?:_phy)?\s*[:=]\s*(?:[5-9]|\d{2,})\b|Symbol Error rate.{0,20}exceed|\bBER\b.{0,24}(?:exceed|above)", physical=True),
    aside(Part.CONTEXT, "net.no-carrier", "no-carrier", "ip(8): an interface that is up and sees no peer; a spare port looks the same", r"(?P<device>\S+?)(?:@\S+)?: <NO-CARRIER,"),
    root(FaultClass.NETWORK_LINK, "link.module-error", "module event[error]", 0.88, _NIC, r"[Pp]ort module event\[error\](?!.{0,80}High Temperature)", physical=True),
    root(FaultClass.NETWORK_LINK, "link.module", ("module event", "unplugged", "module", "cmis", "transceiver", "sfp", "qsfp", "eeprom", "rx los", "signal loss", "laser", "bad cable", "power budget", "cable"), 0.72, _NIC,
         r"[Pp]ort module event.{0,80}(?:error|[Bb]ad|[Uu]nsupported|[Uu]nshielded|Bus stuck|[Pp]ower budget|[Hh]igh)|unsupported Q?SFP|\bCMIS\b.{0,60}(?:failed|timed out|ModuleFault)|^(?!.*(?:\btrunk port|threshold\s*:|fault recovered|Operation not supported)).*(?:[Tt]ransceiver|\bQ?SFP\S*|[Cc]able|(?:\b[Pp]ort|\b[Oo]ptic\w*|\b[Nn]etwork|\bNIC|\b[Ll]aser) [Mm]odule|[Mm]odule(?= \d)|[Oo]ptic\w*) .{0,60}(?:\bfault|fail|removed|[Bb]ad|unsupported|not supported|LOS\b|alarm(?!\w*\s*:\s*Off)|out of range|degraded|missing)|(?:[Rr]x|[Tt]x)[ _](?:LOS|power) .{0,30}(?:alarm|low|warning)(?!.{0,20}threshold\s*:|.{0,30}:\s*(?:Off|False|No))|[Ll]ow (?:rx|optical|receive) power", physical=True),
    root(FaultClass.NETWORK_LINK, "link.downgraded", ("downgraded by smartspeed", "unexpected actual link", "width degraded"), 0.8, _NIC + " and subnet tools: lanes or pairs of a cable that fail",
         r"downgraded by smartspeed|Unexpected actual link|(?<!pcie )(?<!pci )link width degraded", physical=True),
    root(FaultClass.NETWORK_IB, "ib.link-counters", ("symbolerror", "linkerrorrecovery", "linkdowned", "portrcverrors", "localLinkIntegrityErrors".lower(), "excessivebufferoverrun", "portrcvremotephysicalerrors"), 0.78, _IB,
         r"\[(?:SymbolError\w*|LinkErrorRecovery\w*|LinkDowned\w*|PortRcvErrors|LocalLinkIntegrityErrors|ExcessiveBufferOverrun\w*) == [1-9]\d*\]", physical=True),
    root(FaultClass.NETWORK_IB, "ib.port-state", ("state:", "port_down", "port_init", "physical state", "phys_state", "state down", "state init", "rate:"), 0.76, "ibstat, ibv_devinfo and rdma(8)",
         r"^\s*State:\s*(?:Down|Initializing|Armed)\s*$|^\s*Physical state:\s*(?:Disabled|PhyTest)|state:\s*PORT_(?:DOWN|INIT|ARMED)|state (?:DOWN|INIT|ARMED) physical_state \w+", physical=True),
    root(FaultClass.NETWORK_ETH, "net.bond-degraded", ("bond", "lacp", "aggregator", "mlag"), 0.6, _NET,
         r"bond\d+: .{0,80}(?:no active|all slaves are down|[Nn]o 802\.3ad response|aggregator .{0,20}has no|now running without any active)|LACP .{0,40}(?:fail|timeout|down)", physical=True),
    root(FaultClass.NETWORK_LINK, "net.lacp-expired", "lacp", 0.66, _NET + ": a leg on which the partner is no longer heard", r"\blacp\b.{0,24}\bexpired\b", physical=True),
)  # fmt: skip

_OVER = (
    healthy("over.eqe", "recovered ", 0.6, _NIC + ": the event that was lost was found", r"mlx5_core .{0,40}\bRecovered \d+ EQEs", settles=("net.watchdog", "net.watchdog-ethernet", "host.kernel.nic_queue_stuck")),
    healthy("over.fw-start", "firmware version", 0.6, _NIC + ": the firmware that was waited for", r"mlx5_core \S+ firmware version: \d", settles=("nic.firmware-start",)),
    healthy("over.link-bmc", "link restored", 0.6, "iLO", r"Network Adapter Link restored", settles=("link.down", "net.link-down")),
)  # fmt: skip

_TOOLS = (
    root(FaultClass.NETWORK_IB, "ib.tools", ("ibwarn", "ibpanic", "iberror", "sminfo", "smpquery", "saquery", "ibnetdiscover", "-e- "), 0.72, "infiniband-diags and ibdiagnet",
         r"\b(?:ibwarn|ibpanic|iberror|sminfo|smpquery|saquery|ibnetdiscover)\b.{0,120}(?:failed|can't|timed? ?out|timeout|error)|(?:^|: )-E- .{0,120}(?<!PCI )\b(?:lid|port|link|node)\b", physical=True),
    root(FaultClass.NETWORK_IB, "ib.pm-counter", "performance monitor counter", 0.66, "ibdiagnet", r"^-W- .{0,160}Value : [1-9]", physical=True),
    root(FaultClass.NETWORK_IB, "ib.work-completion", ("failed status", "completion with error", "syndrom", "wc error", "exchange data between"), 0.78, "perftest, rdma-core examples and RDMA applications",
         r"[Ff]ailed status .{0,60}(?:for )?wr_id|[Cc]ompletion with error|^(?!.*\blpfc\b).*[Ff]ailed status \d+|\bwc error\b|Failed to exchange data between server and client", origin=Origin.UNKNOWN),
    root(FaultClass.NETWORK_IB, "opensm.port-left", ("changed state from active", "gid out of service", "num:65"), 0.66, "opensm", r"changed state from ACTIVE to (?:DOWN|INIT)|GID out of service", physical=True),
)  # fmt: skip

_SUBNET = (
    root(FaultClass.NETWORK_SWITCH, "switch.err-disabled", ("err-disabled", "errdisable", "err-disable"), 0.74, _SWITCH, r"(?<!status )\berr-?disabled?\b", physical=True),
    root(FaultClass.NETWORK_IB, "opensm.error", ("err ", "subnet manager", "opensm", "sm port is down", "duplicate", "timeout while getting", "dr smp"), 0.76, _IB,
         r"^(?!.*\bnvlsm\b).*\bERR [0-9A-F]{4}: .{0,160}|SM port is down|entering (?:the )?(?:NOT-ACTIVE|DISCOVERING) (?:SM )?state.{0,30}(?:lost|timeout)|[Dd]uplicated (?:port )?GUID(?!s Detection finished)|Timeout while getting attribute", physical=True),
    root(FaultClass.NETWORK_SWITCH, "switch.failed", ("switch", "spine", "leaf", "chassis", "fpc ", "credit loop", "asic", "line card", "linecard", "fabric card", "bgp", "ufm", "port-channel", "interface ethernet", "swss", "syncd"), 0.74, _SWITCH,
         r"(?:^|[\s(])(?:leaf|spine|tor|ib|core|aggregation|network|ethernet|infiniband|mlx|quantum\S*)[ -]?switch\b.{0,80}(?:down|fail|reboot|unreachable|error|crash|offline|unresponsive|lost|power)|"
         r"\bswitch ['\"]?[\w.-]+['\"]? (?:is |was |has been |went )?(?:down|unreachable|offline|reboot\w*|not responding|isolated|lost)|(?:[Ll]ine ?[Cc]ard|[Ff]abric [Cc]ard|[Ss]upervisor|(?<!amdgpu )(?<!amdgpu: )ASIC) .{0,60}(?:fail|crash|reset|fatal|parity|offline)|(?:syncd|orchagent|swss).{0,60}(?:crash|fail|abort)|%\w+-[0-2]-\w+:|\bCHASSISD_\w+: .{0,60}(?:offline|fail|error)|\bFPC \d+ (?:Major|Critical|Hard) Error|[Rr]eload [Cc]ause.{0,80}(?:[Kk]ernel [Pp]anic|[Ww]atchdog|[Cc]rash)|[Cc]redit loops? (?:was |were )?detected", physical=True),
    root(FaultClass.NETWORK_SWITCH, "switch.reloaded", "reload cause", 0.92, _SWITCH, r"\b[Rr]eload [Cc]ause\b.{0,80}(?:[Pp]anic|[Ww]atchdog|[Cc]rash)", physical=True),
    root(FaultClass.NETWORK_SWITCH, "switch.neighbor", "neighbor ", 0.74, _SWITCH + ": a session of its routing", r"neighbor (?P<sensor>\S+) Down\b", physical=True),
    healthy("over.neighbor", "neighbor ", 0.6, _SWITCH, r"neighbor (?P<sensor>\S+) Up\b", settles=("switch.neighbor",)),
    root(FaultClass.NETWORK_SWITCH, "switch.module", ("module status fault", "sdk fatal event", "fatal health event"), 0.88, _SWITCH, r"Switch Module Status Fault|\bSDK fatal event\b|\bFatal health event\b", physical=True),
    root(FaultClass.NETWORK_SWITCH, "switch.many-links", ("switch reboot", "all ports", "all links"), 0.7, _SWITCH,
         r"all (?:ports|links) (?:on|of|to) (?:switch|leaf|spine).{0,30}(?:down|lost)", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "fabric-manager.failed", ("fabric manager", "fabricmanager", "nv-fabricmanager", "nvlsm", "imex", "nvswitch"), 0.85, "Fabric Manager, NVLSM and IMEX texts",
         r"(?:nvidia-|nv-)?fabric[ -]?manager(?:\.service|\[\d+\])?.{0,120}(?:fail|error|mismatch|abort|exited|not running|inactive|timed? ?out|doesn't match|does not match|unable|cannot)|nvidia-imex.{0,80}(?:fail|error|not ready|DOWN|UNAVAILABLE)|failed to (?:open|initialize|bind|request).{0,60}(?:fabric|NVSwitch|nvswitch)"),
    healthy("over.imex", ("connected to all nodes", "domain state: up"), 0.6, "IMEX texts", r"nvidia-imex.{0,80}(?:Connected to all nodes|Domain State: UP)", settles=("fabric-manager.failed",)),
    aside(Part.CONTEXT, "systemd.unit", ".service - ", "systemctl status", r"^\W*(?P<value>[\w@.-]+)\.service - ", sets="unit"),
    root(FaultClass.DRIVER_FIRMWARE, "fabric-manager.unit-failed", "active: failed", 0.85, "systemctl status", r"^\s*Active: failed\b", when=(("unit", "nvidia-fabricmanager"),)),
    root(FaultClass.NVLINK, "fabric-manager.nvlink", ("nvlink", "nvswitch", "inactive", "trunk"), 0.88, "Fabric Manager texts and nvidia-smi",
         r"failed to enable NVLink for GPU|trunk link failure|\(NVLink switch.{0,100}changed state from ACTIVE to DOWN|(?:detected|fatal) NVSwitch fatal|NVLink .{0,60}(?:training (?:fail|error)|not trained|in(?:A|a)ctive|down\b|degraded|lane.{0,20}fail)|all links are in ?[Aa]ctive|(?:NVLink|nvlink) (?:P2P )?(?:status|state)\s*:\s*(?:Not [Ss]upported|Disabled|[Ii]nactive)", physical=True),
    root(FaultClass.NETWORK_ETH, "net.services-gone", ("connection timed out", "no route to host", "network is unreachable", "unreachable", "name resolution", "unable to contact", "connect failure"), 0.6, "several clients of a host",
         r"Unable to contact (?:slurm controller|\S+ server)|[Cc]ommunication connection failure|kubelet.{0,60}(?:no route to host|i/o timeout|connection refused)|dial tcp .{0,60}(?:i/o timeout|no route to host|network is unreachable)", origin=Origin.INFRA),
)  # fmt: skip

SIGNATURES = (*_ADAPTERS, *_LINKS, *_OVER, *_TOOLS, *_SUBNET)
