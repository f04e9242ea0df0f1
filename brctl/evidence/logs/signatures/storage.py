"""Disks, arrays, file systems and the clients of file servers and object stores.

Source: drivers/{nvme,ata,scsi,md,block}, fs/{ext4,xfs,btrfs,nfs,fuse,ceph} of Linux 4.x to 6.x; texts of
Lustre, Storage Scale (GPFS), BeeGFS, WekaFS, Ceph; e2fsprogs; errno; S3, GCS and Azure clients.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, aside, healthy, root
from brctl.model.fault import FaultClass, Origin

_BLOCK = "Linux block layer, NVMe, SCSI and ATA drivers"
_FS = "Linux file systems and e2fsprogs"
_NET = "network and parallel file system clients"
_OBJECT = "object store clients"
_TORCH = "torch serialization and checkpoint texts"
_S = FaultClass.STORAGE_CHECKPOINT

_DISKS = (
    root(_S, "block.io-error", ("i/o error", "blk_update_request", "medium error", "unrecovered read", "critical target", "critical space", "protection error", "lost async page write", "buffer i/o", "i/o cmd(", "failed result:", "synchronize cache", "super_written"), 0.84, _BLOCK,
         r"(?:blk_update_request|print_req_error): .{0,20}(?:error|I/O)|(?:I/O|critical (?:medium|target|nexus|space allocation)|protection|timeout|operation not supported) error, dev (?P<disk>\w+)|Buffer I/O error (?:on|in)|(?<!non-)[Mm]edium [Ee]rror|[Uu]nrecovered read error|lost async page write|Sense Key : (?:Medium|Hardware) Error|Add\. Sense: (?:Unrecovered|Internal target)|(?P<disk2>nvme\d+n\d+): I/O Cmd\(|\[(?P<disk3>sd\w+)\] (?:tag#\d+ )?FAILED Result: hostbyte=(?!DID_OK)|Synchronize Cache\(\d+\) failed|md: super_written gets error", physical=True),
    root(_S, "scsi.command-failed", "failed result: hostbyte=did_ok", 0.84, _BLOCK + ": the disk answered; the sense behind it says what", r"\[(?P<sensor>(?P<disk>sd\w+))\] (?:tag#\d+ )?FAILED Result: hostbyte=DID_OK", physical=True),
    root(_S, "nvme.dead", ("controller is down", "nvme nvme", "removing after probe failure", "device not ready", "disabling device", "abort status", "controller fatal", "csts"), 0.88, _BLOCK,
         r"(?P<disk>nvme\d+)(?:n\d+)?: (?:controller is down; will reset|Removing after probe failure|Device not ready; aborting|Disabling device after reset|I/O \d+ (?:\(\S+\) )?QID \d+ timeout, (?:reset controller|disable controller|aborting)|I/O tag \d+ .{0,40}QID \d+ timeout, (?:reset|disable|abort)|.{0,20}failed to reset|Could not set queue count|Identify Controller failed|Device shutdown incomplete|frozen state error|fatal)|CSTS=0xffffffff", physical=True),
    root(_S, "nvme.slow-command", ("completion polled",), 0.6, _BLOCK, r"(?P<disk>nvme\d+): I/O .{0,40}timeout, completion polled", physical=True, per_minute=5),
    root(_S, "nvme.no-path", ("no usable path", "no available path"), 0.5, "NVMe multipath", r"block (?P<disk>\w+): no (?:usable|available) path", physical=True),
    root(_S, "scsi.reset", ("host bus reset", "host adapter abort", "scsi hang", "adapter reset", "rejecting i/o to offline device", "task abort", "device offlined", "host reset", "controller reset", "abort request", "megaraid", "mpt3sas", "mpt2sas", "aacraid", "hpsa", "smartpqi", "offlining lun"), 0.85, _BLOCK,
         r"[Hh]ost bus reset request|SCSI hang|[Hh]ost adapter abort request|rejecting I/O to offline device|Device offlined - not ready|"
         r"(?:aacraid|megaraid_sas|mpt[23]sas\w*|hpsa|smartpqi|qla2xxx|lpfc|mpi3mr)\b.{0,100}(?:reset|abort|hang|\bfault|FW in FAULT|timed? ?out|offlin|task management|dead)(?!.{0,20}(?:succeeded|SUCCESS|!!\s*$))", physical=True),
    root(_S, "hba.dead", ("non-operational", "fault_state", "controller lockup", "adapter kernel panic", "isp system error", "link down event", "loop down", "adapter hardware error", "abort isp", "is offline: status"), 0.92, "SAS, RAID and Fibre Channel adapters: their own firmware stopped, or their link",
         r"\b(?:mpt[23]sas\w*|mpi3mr\w*)\b.{0,40}(?:non-operational|fault_state\()|controller lockup detected|adapter kernel panic'd|\bqla2xxx\b.{0,60}(?:ISP System Error|LOOP DOWN|Abort ISP)|\blpfc\b.{0,60}(?:Link Down Event|Adapter Hardware Error)", physical=True),
    root(_S, "ata.error", ("exception emask", "failed to identify", "failed to set xfermode", "disabled", "revalidation failed"), 0.84, _BLOCK + ": one exception is over when its disk is set up again",
         r"(?P<sensor>ata\d+)(?:\.\d+)?: (?:exception Emask|failed to (?:IDENTIFY|set xfermode)|disabled(?! \w)|revalidation failed)", physical=True),
    root(_S, "ata.reset", "hard resetting", 0.84, _BLOCK, r"(?P<sensor>ata\d+)(?:\.\d+)?: hard resetting", physical=True),
    aside(Part.CONTEXT, "ata.command", "failed command:", _BLOCK + ": follows its exception", r"ata\d+(?:\.\d+)?: failed command"),
    root(_S, "ata.no-link", ("link is slow to respond", "comreset failed"), 0.7, _BLOCK + ": a port that finds no link; an empty one never does",
         r"(?P<sensor>ata\d+): (?:COMRESET failed|link is slow to respond)", physical=True),
    root(_S, "md.degraded", ("disk failure on", "raid", "failing array", "md/raid", "degraded", "failed devices :", "faulty"), 0.8, "md, LVM, ZFS and RAID tools",
         r"md/raid\S*: .{0,60}(?:Disk failure|fail|Operation continuing on)|raid\d+:.{0,40}[Dd]isk failure|[Dd]egraded ?Array|\[U*_+U*\]|(?<!domain )state: (?:DEGRADED|FAULTED|SUSPENDED|UNAVAIL)|(?:logical|virtual) (?:drive|disk).{0,30}(?:degraded|failed|offline)|^\s*State : .*\bdegraded\b|^\s*Failed Devices : [1-9]|\bfaulty\s+/dev/\w+|\|\s*(?:Partially )?Degraded\s*\|", physical=True),
    root(_S, "dm.failing", "device-mapper", 0.82, "device mapper",
         r"device-mapper: .{0,80}(?:metadata operation .{0,60}failed|has failed|failed to|read-only mode|I/O error|aborting)", physical=True),
    root(_S, "multipath.path", "failing path", 0.82, "device mapper: one of a disk's paths", r"device-mapper: .{0,80}failing path (?P<sensor>\d+:\d+)", physical=True),
    root(_S, "multipath.no-path", "remaining active paths: 0", 0.86, "multipathd", r"(?P<sensor>[\w.-]+): remaining active paths: 0\b", physical=True),
    root(_S, "iscsi.connection", ("kernel reported iscsi connection", "detected conn error", "iscsi_err_"), 0.86, "iSCSI texts of Linux and iscsid",
         r"Kernel reported iSCSI connection (?P<sensor>\d+:\d+)|connection(?P<sensor2>\d+:\d+): detected conn error|ISCSI_ERR_\w+", physical=True),
    root(_S, "storage.any", ("sd ", "scsi", "ata", "nvme", "md/", "md: ", "mdadm", "ext4-fs", "xfs", "btrfs", "jbd2", "zfs", "mpt3sas", "megaraid", "smartpqi", "virtio_blk", "rbd", "nbd", "fat-fs", "gfs2", "ocfs2", "9pnet", "bcache", "mmc", "fs-cache", "cachefiles", "rpc.statd"), 0.56, _BLOCK + ": any device or file system that failed",
         r"(?:^|[\]:] |kernel: )(?:sd \d+:\d+:\d+:\d+|scsi (?:host)?\d\S*|ata\d+(?:\.\d+)?|nvme (?:nvme)?\S+|md(?:/\w+)?|EXT4-fs|XFS|BTRFS|JBD2|FAT-fs|ZFS|mpt3sas\w*|megaraid_sas|smartpqi|virtio_blk|rbd|nbd\d*|gfs2|OCFS2|9pnet|bcache|mmcblk\d|mmc\d|FS-Cache|CacheFiles|cachefiles|rpc\.statd\S*)\b(?!.{0,120}(?:AER|PCIe Bus Error|error status/mask|errors=|SATA link down|failed command: |Asking for cache|Mode Sense|APST|SUBNQN|Shutdown timeout set|BTRFS info|read error corrected|(?:initial|last) error at|error handler|async error buffers|allowing degraded|-o degraded|falling back)).{0,120}\b(?:failed|failure|error|tim(?:ed|ing) ?out|timeout|offline|aborted|abort|corrupt\w*|crit error|degraded|dead|disable device|withdrawn|lost connection|(?:data|buffer) .{0,10}lost|result -\d+)\b(?<!recovered error)(?!(?: status)? ?[:=]? ?0(?:x0+)?\b)", part=Part.GENERIC),
    root(_S, "nvme.polled", "completion polled", 0.58, _BLOCK + ": an interrupt that was lost and made up for", r"nvme\S* ?\S*: I/O .{0,60}timeout, completion polled", per_minute=1.0, physical=True),
    root(_S, "smart.bad-sectors", ("current_pending_sector", "offline_uncorrectable", "reported_uncorrect"), 0.72, "smartctl: sectors that could not be read",
         r"\b(?:Current_Pending_Sector|Offline_Uncorrectable|Reported_Uncorrect)\b.{20,80}\s[1-9]\d*\s*$", physical=True),
    root(_S, "raid.listing", ("degraded", "firmware state", "drive ", " ubad", " failed ", " offln", " msng"), 0.8, "storcli, MegaCli and ssacli: a drive or an array that is not whole",
         r"^\s*State\s*: (?:Partially )?(?:Degraded|Offline|Failed)\s*$|Firmware state: (?:Failed|Unconfigured\(bad\)|Offline|Missing)|^\d+:\d+\s+\d+ (?:Failed|UBad|Offln|Msng)\s|(?:logical|physical)drive .{0,80}(?:, |\()(?:Failed|Interim Recovery Mode|Predictive Failure)\)", physical=True),
    root(_S, "smart.failing", ("smart", "reallocated", "pending sector", "failing_now", "media_errors", "media and data integrity", "percentage_used", "percentage used", "critical_warning", "critical warning", "s.m.a.r.t"), 0.76, "smartctl, smartd and nvme-cli",
         r"self-assessment test result: FAILED|FAILING_NOW|S\.M\.A\.R\.T\.?:? Status:? (?:Bad|Fail)|(?-i:SMART).{0,40}(?:(?-i:FAIL)|Failure:|Prefailure|threshold exceeded)|smartd\[?\d*\]?.{0,60}(?:FAILURE|[1-9]\d* (?:Currently unreadable|Offline uncorrectable))|[Cc]ritical[_ ][Ww]arning\s*:\s*(?:0x0?[1-9a-f]|[1-9])|Critical Warning \(0x|[Mm]edia (?:and Data Integrity )?[Ee]rrors:?\s+[1-9]\d", physical=True),
)  # fmt: skip

_FILE_SYSTEMS = (
    root(_S, "kernel.hung-storage-task", "blocked for more than", 0.84, "names of kernel threads that write to disks and servers",
         r"task (?:jbd2|xfsaild|xfs-|btrfs|nfsd|nfsiod|nfsv4|txg_\w+|z_\w+|zvol|ptlrpcd|ll_|mmfsd|ceph|rbd|dm_|dmcrypt|md\d+_|flush-|loop\d|kworker/\S*(?:flush|xfs|nfs|dm-))\S*:\d+ blocked for more than", physical=True),
    root(_S, "fs.pool-suspended", ("has been suspended", "uncorrectable i/o failure", "lockd: server"), 0.86, "ZFS and lockd texts",
         r"uncorrectable I/O failure and has been suspended|lockd: server \S+ not responding", physical=True),
    root(_S, "fs.shutdown", ("xfs (", "ext4-fs", "btrfs", "forced readonly", "read-only", "f2fs", "filesystem has been shut", "journal", "fsck", "unexpected inconsistency", "structure needs cleaning", "superblock", "file system with errors", "jbd2:", "vdev_state="), 0.84, _FS,
         r"XFS \([^)]*\): .{0,120}(?:[Ss]hut(?:ting)? ?down|[Cc]orruption|log I/O error|metadata I/O error|CRC error|mount/recovery failed|xfs_repair|failed to recover|log recovery|Please u?n?mount)|vdev_state=(?:FAULTED|DEGRADED|UNAVAIL|REMOVED)|This should not happen!! Data|"
         r"EXT4-fs (?:error|abort|\([^)]*\):.{0,60}(?:error count|[Rr]emounting|failed|aborted|previous I/O error))|JBD2: .{0,80}(?:[Ee]rror|[Dd]etected IO errors|abort)|[Jj]ournal has aborted|Aborting journal|"
         r"BTRFS(?: \w+)?(?: \([^)]*\))?: .{0,120}(?:transaction aborted|parent transid verify failed|bdev \S+ errs(?!: wr 0, rd 0, flush 0, corrupt 0, gen 0)|checksum error|open_ctree failed|failed to read|csum failed|corrupt(?! 0\b)|lost page write)|BTRFS (?:error|critical)(?!.*(?:errno=-28|No space left))|"
         r"[Rr]emounting filesystem read-only|[Rr]emounted read-only|UNEXPECTED INCONSISTENCY|RUN fsck MANUALLY|[Ss]tructure needs cleaning|fsck (?:found errors|failed|exited with)|contains a file system with errors|bad superblock|[Bb]ad magic number in super-?block|wrong fs type, bad option, bad superblock", physical=True),
    root(_S, "fs.forced-readonly", "forced readonly", 0.84, _FS + ": what follows an error, or a disk that is full", r"BTRFS.{0,120}forced readonly"),
    root(_S, "fs.pool-member", (" faulted", " unavail", "devices are faulted", "could not be opened", "could not be used"), 0.86, "zpool status; a member that is replaced is DEGRADED too",
         r"^\s*\S+\s+(?:FAULTED|UNAVAIL)\s+\d\S*\s+\d\S*\s+\d|status: One or more devices (?:are faulted|could not be (?:opened|used))", physical=True),
    root(_S, "fs.repair", ("metadata corruption detected at", "couldn't map inode"), 0.84, "xfs_repair: what it cannot repair", r"Metadata corruption detected at 0x|fatal error -- couldn't map inode"),
    root(_S, "fs.fuse", ("transport endpoint is not connected", "fuse"), 0.72, "FUSE clients",
         r"(?:'|\"|: |on )/\S+(?:'|\")?:? .{0,20}Transport endpoint is not connected|Transport endpoint is not connected: ['\"]?/|Errno 107\b|fuse: .{0,60}(?:abort|fail|bad)"),
    root(_S, "kernel.hung-io", ("nfs_", "nfs4_", "rpc_wait", "fuse_", "ceph_", "ll_file", "wait_on_page", "jbd2", "xfs_log"), 0.5, "stack of a hung task",
         r"\b(?:nfs4?_\w+|rpc_wait\w*|fuse_\w+|ceph_\w+|ll_file\w*|cl_\w+wait\w*|wait_on_page_bit\w*|jbd2_\w+|xfs_log_\w+)\+0x", when=(("hung-task", "*"),), physical=True),
    root(FaultClass.HOST_KERNEL, "kernel.hung-rpcrdma", ("rpcrdma", "xprt_rdma"), 0.86, "stack of a hung task: the transport's own lock", r"\b(?:rpcrdma|xprt_rdma)_\w+\+0x", physical=True, own=True),
    aside(Part.CONTEXT, "kernel.task-in-d-state", ("state:d ",), "Linux hung task reports", r"task:(?P<value>\S+)\s+state:D\b", sets="hung-task"),
)  # fmt: skip

_FULL = (
    root(FaultClass.DISK_FULL, "fs.no-space", ("errno=-28", "no space left", "out-of-data-space", "no free data space"), 0.92, _FS + ": what the file system or a thin pool lacks; read-only is what follows",
         r"BTRFS.{0,160}errno=-28\b|\bbtrfs\b.{0,160}No space left|device-mapper: thin.{0,80}(?:out-of-data-space|no free data space)", origin=Origin.USER),
)  # fmt: skip

_OVER = (
    healthy("over.lustre-client", "connection restored", 0.6, "Lustre client: the server of a file system is back", r"Lustre: .{0,120}Connection restored\b", settles=("netfs.stall", "lustre.lost", "lustre.error")),
    healthy("over.lnet", "recovery ping successful", 0.6, "Lustre networking", r"LNet: .{0,80}recovery ping successful", settles=("lnet.recovery",)),
    healthy("over.md-read", "read error corrected", 0.6, "md: what a disk could not read was written to it again from the others",
            r"md/raid\S*: ?read error corrected .{0,60}\bon (?P<sensor>\w+)\)", settles=("scsi.command-failed", "block.io-error", "block.error")),
    healthy("over.nvme-slot", "restart after slot reset", 0.6, "NVMe: a controller that runs again after the port was reset", r"nvme\d+: restart after slot reset", settles=("storage.any", "nvme.dead", "block.error")),
)  # fmt: skip

_CLIENTS = (
    root(_S, "nfs.timed-out", ("nfs", "stale file handle", "stale nfs", "not responding", "rpc: "), 0.84, _NET,
         r"nfs: server (?P<peer>\S+) not responding|[Ss]tale (?:NFS )?file handle|Errno 116\b|mount\.nfs\d?: .{0,80}(?:timed out|refused|denied|failed|unreachable|No route)|NFS(?:v4)?: .{0,60}(?:error -?\d+|failed|state manager.{0,30}failed)|nfs4_\w+: .{0,60}(?:error|fail)|\bRPC: .{0,60}(?:timed out|failed|unreachable)|NFS: Server \S+ reports our clientid"),
    root(_S, "nfs.gave-up", ("not responding, timed out",), 0.88, "Linux NFS client, soft mounts: the program gets an error", r"nfs: server (?P<peer>\S+) not responding, timed out"),
    root(_S, "ceph.health", ("slow ops", "health_warn", "health_err", "osd_down", "pg_degraded", "pg_availability", "mds_", "slow request", "slow_ops", "osd.", "reported failed"), 0.84, "Ceph cluster log",
         r"^(?!.*Health check cleared).*\b[1-9]\d* slow ops, oldest|HEALTH_ERR|Health check (?:failed|update): .{0,120}\((?:SLOW_OPS|OSD_\w*DOWN|PG_\w+|MDS_\w+|OSD_FULL|OSD_NEARFULL|MON_DOWN|SLOW_\w+)\)|slow requests? are blocked|osd\.\d+ (?:\S+ )?(?:reported failed|marked down|failed)"),
    root(_S, "fuse.client", ("gcsfuse", "s3fs", "goofys", "rclone", "mount-s3", "blobfuse", "juicefs", "sshfs", "alluxio", "cunofs", "cvmfs", "dfuse"), 0.93, "object stores mounted as file systems",
         r"\b(?:gcsfuse|s3fs|goofys|rclone|mount-s3|blobfuse2?|juicefs|sshfs|alluxio|cunofs|cvmfs2?|dfuse)\b(?!.*(?:detect network throughput|[Pp]olicy set with|NOTICE: .*low level retry [1-9]/|[Nn]o space left)).{0,200}(?:error\b|\bfail|timed? ?out|TIMEDOUT|deadline ?exceeded|unreachable|disconnect)(?!\w*[:=] ?0\b)"),
    root(_S, "storage.status", ("availability down", "unavailable", "backends down", "consistency: bad", "drbd", "was evicted", "slow operation", "can't read superblock", "cannot import", "gss"), 0.78, "status commands and daemons of storage systems",
         r"mmlsdisk.{0,60}(?:down|unrecovered)|\bnsd\w*\b.{0,40}availability down|weka\b.{0,60}(?:UNAVAILABLE|backends DOWN|DEGRADED)|consistency: bad|drbd\d* ?\S*: .{0,60}(?:Failed|Diskless|Inconsistent|NetworkFailure|BrokenPipe)|ceph-fuse.{0,80}evicted|juicefs.{0,20}slow operation|can't read superblock|cannot import '[^']+': I/O error|rpc\.gssd.{0,60}(?:ERROR|expired)", physical=True),
    root(_S, "autofs.mount", "automount", 0.72, "autofs", r"automount\[?\d*\]?.{0,100}(?:mount failure|failed|not found in map|timed out|could not)"),
    root(_S, "netfs.mount", ("mount.lustre", "mount.ceph", "mount.beegfs", "mount.glusterfs", "mount error("), 0.84, _NET, r"mount\.(?:lustre|ceph|beegfs|glusterfs)\b.{0,160}(?:failed|error)|mount error\(\d+\)"),
    root(_S, "lnet.recovery", "peer nis in recovery", 0.6, "Lustre networking", r"LNet: [1-9]\d* peer NIs in recovery"),
    root(_S, "lustre.error", ("lustreerror",), 0.8, _NET, r"LustreError: (?!.{0,40}lock timed out.{0,20}enqueued).{0,200}"),
    root(FaultClass.SILENT_CORRUPTION, "lustre.checksum", "checksum: ", 0.86, "Lustre: what arrives is not what was sent", r"LustreError: .{0,80}BAD (?:READ|WRITE) CHECKSUM"),
    root(_S, "lustre.lost", ("lustre:", "lnet", "lnetrerror", "lneterror"), 0.74, _NET,
         r"Lustre: (?!.{0,160}\b0 were evicted).{0,160}(?:was lost|evicted|timed out|in progress operations|Request .{0,40}has (?:timed out|failed))|LNet(?:Error)?: .{0,120}(?:timed out|fail|error|no route|aborting)"),
    root(_S, "gpfs.error", ("gpfs", "mmfs", "6027-", "spectrum scale"), 0.86, _NET,
         r"(?:mmfs(?!: \[I\])|GPFS|6027-\d+)(?!.*\blease renewed).{0,160}(?:unmount|lost|stale|panic|expel|error|fail|quorum|unavailable|lease|I/O)|(?:expelled|lease|unmounted|quorum).{0,120}6027-\d+|\[[EX]\] .{0,40}(?:6027|mmfs|GPFS).{0,80}"),
    root(_S, "gpfs.node", ("lost membership", "unexpectedly lost", "expelled"), 0.8, "Storage Scale (GPFS) log of a cluster's nodes",
         r"\[[NEW]\] .{0,60}(?:[Ll]ost membership|unexpectedly lost|is being expelled|expelled by)"),
    root(_S, "parallel-fs.error", ("beegfs", "weka", "ceph", "libceph", "gluster", "orangefs", "panfs", "vast", "daos", "cephfs", "longhorn", "rook", "has not responded in", "cifs", "rbd: "), 0.8, _NET,
         r"(?:lib)?ceph: .{0,100}(?:hung|lost|stale|timeout|session (?:lost|reset|stale)|socket (?:closed|error)|osd\d+ down|mds\d+ (?:hung|lost|reconnect denied|caps stale|closed)|error|fail)|\b(?:beegfs|weka\w*|gluster\w*|panfs|daos\w*|longhorn|rook)\b.{0,100}(?:error|\bERR\b|fail|timed? ?out|unreachable|disconnect(?!ed idle)|lost|faulted|fenced|excluded|degraded|read-only)|has not responded in (?:the last )?\d+ seconds|CIFS:? (?:VFS:?)?.{0,80}(?:\bError|not responded|failed|timed out)|\brbd\d*: .{0,40}result -\d+"),
    root(_S, "volume.mount", ("failedmount", "failedattachvolume", "mountvolume", "unable to attach or mount", "volume", "csi"), 0.8, "Kubernetes volume events",
         r"MountVolume\.\w+ failed|FailedMount\b|FailedAttachVolume|Unable to attach or mount volumes|AttachVolume\.\w+ failed|NodeStageVolume.{0,60}(?:fail|error)|volume .{0,60}(?:faulted|is not ready|detached unexpectedly)"),
    root(_S, "object-store.timeout", ("operation too slow", "slowdown", "requesttimeout", "s3", "gcs", "blob", "botocore", "curl_transport", "boto3", "endpointconnectionerror", "incompleteread", "internalerror", "serviceunavailable", "load"), 0.72, _OBJECT,
         r"Operation too slow|An error occurred \((?:SlowDown|InternalError|ServiceUnavailable|RequestTimeout|503|500)\)|curl_transport\.cc.{0,40}Error|\b(?:s3|gs|gcs|abfs|azure|blob)\b\S*.{0,60}(?:timed? ?out|(?<![\d.,])5\d\d\b(?![.,]?\d| ?(?:s|ms|sec\w*|[KMG]i?B|%|it)\b)|unavailable|IncompleteRead)|(?:[Ff]ailed to (?:up|down)load|(?:when|while) resuming (?:up|down)load)\b.{0,160}(?:\bto bucket\b|\bbucket/|\b(?:gs|s3|abfss?|wasbs?|oss)://|\bS3\b)|ReadTimeoutError.{0,40}(?:s3|storage|blob)"),
    root(_S, "object-store.access", ("expiredtoken", "requesttimetooskewed", "accessdenied", "nosuchbucket", "invalidaccesskeyid", "signaturedoesnotmatch", "nocredentials", "expired"), 0.7, _OBJECT,
         r"An error occurred \((?:ExpiredToken\w*|RequestTimeTooSkewed|AccessDenied|NoSuchBucket|NoSuchKey|InvalidAccessKeyId|SignatureDoesNotMatch|403|401)\)|NoCredentialsError|ExpiredToken", origin=Origin.USER),
)  # fmt: skip

_ERRNO = (
    root(_S, "errno.server-gone", ("[errno 110]", "[errno 112]", "[errno 70]", "[errno 108]", "[errno 103]", "[errno 117]", "[errno 19]"), 0.84, "errno of a call on a path: the server behind it",
         r"\[Errno (?:110|112|70|108|103|117|19)\] [^'\"]{3,60}: ['\"]/(?!dev/|proc/|sys/)", origin=Origin.INFRA),
)  # fmt: skip

_CHECKPOINTS = (
    root(FaultClass.DISK_FULL, "errno.no-space-write", ("no space left on device", "[errno 28]", "enospc"), 0.86, _TORCH,
         r"^(?!.*(?:shared memory|/dev/shm|shm_open|/torch_\d)).*(?:OSError|IOError|RuntimeError|write|torch|save|PytorchStreamWriter|tar|cp|rsync|pwrite|fwrite).{0,120}(?:\[Errno 28\]|No space left on device|ENOSPC)", origin=Origin.USER),
    root(_S, "checkpoint.short-write", ("unexpected pos", "inline_container"), 0.45, _TORCH, r"unexpected pos \d+ vs \d+|inline_container"),
    root(_S, "checkpoint.half-written", ("failed finding central directory", "failed reading zip archive", "headertoolarge", "metadataincompletebuffer", "incompletebuffer", "invalid magic number", "unexpected eof", "corrupted file", "invalidheader"), 0.84, _TORCH,
         r"failed finding central directory|failed reading zip archive|(?:Header|Metadata)\w*(?:TooLarge|IncompleteBuffer|InvalidHeader\w*)|invalid magic number; corrupt file|unexpected EOF, expected \d+ more bytes", origin=Origin.UNKNOWN),
    root(FaultClass.USER_CODE, "checkpoint.without-optimizer", "specify --no-load-", 0.84, "Megatron: a checkpoint that holds less than the options ask for", r"Specify --no-load-(?:optim|rng)\b"),
    root(_S, "barrier.save", ("saving", "barrier"), 0.5, "Orbax and Megatron asynchronous saves",
         r"[Bb]arrier .{0,80}(?:sav|checkpoint|ckpt).{0,80}timed? ?out|(?:sav|checkpoint|ckpt)\w* .{0,60}barrier .{0,40}timed? ?out", origin=Origin.UNKNOWN),
)  # fmt: skip

SIGNATURES = (*_DISKS, *_FILE_SYSTEMS, *_FULL, *_OVER, *_CLIENTS, *_ERRNO, *_CHECKPOINTS)
