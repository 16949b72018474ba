"""On what kind of file system a file lies: those of a network cannot be trusted with locks."""

import os
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
#: Names of file systems, without what follows a dot, as in fuse.sshfs.
_NETWORK = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs4"),
        *("ocfs2", "orangefs", "prl_fs", "smb2", "smb3", "smbfs", "sshfs", "vboxsf", "virtiofs", "vmhgfs"),
    }
)


def mounts() -> str:
    """Return the table of mounts as Linux writes it; nothing where the system has none."""
    try:
        return _MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def kind_of(path: str, table: str) -> str | None:
    """Return the name of the file system that the path lies on, None where the table does not tell."""
    real, found, longest = os.path.realpath(path), None, -1
    for line in table.splitlines():
        # The fields are those of proc_pid_mountinfo(5): the fifth is the mount point, the type follows the dash.
        before, dash, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = fields[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
        # Of two mounts on one point the later one is seen.
        if len(point) >= longest and (real == point or real.startswith(point.rstrip("/") + "/")):
            found, longest = rest[0], len(point)
    return found


def is_network(kind: str) -> bool:
    """Whether a file system of this name is one of a network, or of the host of a virtual machine."""
    return bool(_NETWORK.intersection(kind.split(".")))
