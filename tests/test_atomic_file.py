"""Files are replaced whole, with the rights they had; what is no file is written into."""

import os
import socket
import stat
import subprocess
import sys

import pytest

from polytrain.atomic_file import open_descriptor, replace_file, write_atomically, written_in_place

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes, pipes and devices are those of POSIX")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    old = os.umask(0o022)
    yield
    os.umask(old)


def test_a_pipe_is_written_into(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    # Opened for both, the pipe never blocks, whatever is done to its name.
    with open(os.open(path, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        write_atomically(path, [b"one", b"two"])
        assert pipe.read() == b"onetwo"
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


def test_a_device_is_written_into(tmp_path):
    path, link = tmp_path / "null", tmp_path / "link"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # what /dev/null is on Linux
        write_to = os.open(path, os.O_WRONLY)
    except OSError:
        pytest.skip("not permitted to make and open a device")
    os.close(write_to)
    link.symlink_to(path)
    for name in (path, link):
        write_atomically(name, "nothing")
        assert stat.S_ISCHR(path.stat().st_mode)
    assert link.is_symlink()


def test_folders_and_sockets_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, "text")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="Is a socket"):
            write_atomically(tmp_path / "s", "text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


@pytest.mark.skipif(not os.path.exists("/dev/fd/0"), reason="there is no /dev/fd")
def test_an_open_descriptor_is_written_on(tmp_path):
    """A file behind a descriptor keeps what others wrote, and stays the same file."""
    path = tmp_path / "file"
    with path.open("wb", buffering=0) as stream:
        stream.write(b"before ")
        (tmp_path / "link").symlink_to(f"/dev/fd/{stream.fileno()}")
        for name in (f"/dev/fd/{stream.fileno()}", tmp_path / "link"):
            assert open_descriptor(name) == stream.fileno()
            assert written_in_place(name)
            write_atomically(name, "here ")
        stream.write(b"after")
        assert os.path.samestat(os.fstat(stream.fileno()), path.stat())
    assert path.read_bytes() == b"before here here after"
    assert open_descriptor(path) is None
    with pytest.raises(OSError, match="/dev/fd/999999"):
        write_atomically("/dev/fd/999999", "text")


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
def test_standard_output_into_a_pipe():
    script = "from polytrain.atomic_file import write_atomically; write_atomically('/dev/stdout', 'text')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("text", "", 0)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400])
def test_the_mode_of_the_old_file_stays(tmp_path, umask, mode):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    with replace_file(path) as stream:
        assert stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & ~mode == 0
        stream.write(b"new")
    assert mode_of(path) == mode
    (tmp_path / "link").symlink_to(path)
    write_atomically(tmp_path / "link", "newer")
    assert mode_of(path) == mode
    assert path.read_text() == "newer"


def test_a_new_file_obeys_the_umask(tmp_path, umask):
    write_atomically(tmp_path / "file", "new")
    assert mode_of(tmp_path / "file") == 0o644
    os.umask(0o077)
    write_atomically(tmp_path / "other", "new")
    assert mode_of(tmp_path / "other") == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_of_the_old_file_stays_where_possible(tmp_path, umask, monkeypatch):
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 65534, 65534)
    path.chmod(0o640)
    write_atomically(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid, mode_of(path)) == (65534, 65534, 0o640)

    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    write_atomically(path, "newer")
    assert path.stat().st_gid == 0
    assert mode_of(path) == 0o600  # the group is another one now


@pytest.mark.parametrize("letter", ["a", "é", "漢", "🚂"])
def test_the_longest_names(tmp_path, letter):
    size = len(letter.encode())
    for n_bytes in (237, 240, 243, 255):
        name = letter * (n_bytes // size) + "a" * (n_bytes % size)
        write_atomically(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"
    assert len(list(tmp_path.iterdir())) == 4


def test_an_error_leaves_nothing(tmp_path):
    def parts():
        yield b"part"
        assert len(list(tmp_path.iterdir())) == 1
        raise KeyError

    with pytest.raises(KeyError):
        write_atomically(tmp_path / ("x" * 255), parts())
    assert not list(tmp_path.iterdir())
