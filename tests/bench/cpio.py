"""Writes initial RAM disks: cpio archives in the "newc" format that Linux and Weir read."""

import os
import stat

TRAILER = "TRAILER!!!"


def _padded(data):
    return data + b"\0" * (-len(data) % 4)


class Archive:
    """Collects members; entries are relative paths without a leading slash.

    Linux unpacks several archives one after another when they are simply concatenated.
    """

    def __init__(self):
        self._members = []
        self._known = set()

    def _add(self, path, mode, data=b""):
        path = path.strip("/")
        parent = os.path.dirname(path)
        if parent:
            self.directory(parent)
        self._members.append((path, mode, data))
        self._known.add(path)

    def paths(self):
        return set(self._known)

    def directory(self, path, mode=0o755):
        if path.strip("/") not in self._known:
            self._add(path, stat.S_IFDIR | mode)

    def file(self, path, data, mode=0o644):
        self._add(path, stat.S_IFREG | mode, data)

    def copy(self, path, source, mode=None):
        with open(source, "rb") as file:
            self.file(path, file.read(), mode or stat.S_IMODE(os.stat(source).st_mode))

    def link(self, path, target):
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def data(self):
        """The archive as bytes; the same members give the same bytes."""
        parts = []
        for number, (path, mode, data) in enumerate(self._members + [(TRAILER, 0, b"")], 1):
            name = path.encode() + b"\0"
            fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
            header = b"070701" + b"".join(b"%08X" % f for f in fields)
            parts.append(_padded(header + name) + _padded(data))
        archive = b"".join(parts)
        return archive + b"\0" * (-len(archive) % 512)

    def write(self, path):
        with open(path, "wb") as file:
            file.write(self.data())
