"""Downloading, against a server in a thread of this process."""

import gzip
import http.server
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from stand_ins import LABELS

from polytrain_paper.datasets import DataFileError, DataNotFoundError, load_mnist, load_usps

pooch = pytest.importorskip("pooch")


class Server:
    """Serves files; the first ``n_broken`` answers for each name end half way."""

    def __init__(self):
        self.files, self.n_broken, self.requests = {}, 0, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.lstrip("/")
                outer.requests.append(name)
                if name not in outer.files:
                    self.send_error(404)
                    return
                content = outer.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if outer.requests.count(name) <= outer.n_broken:
                    content = content[: len(content) // 2]
                self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(self, *details):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    # A proxy of the machine must not come between the test and its server.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as server:
        yield server


def everything_below(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_downloads_once_and_keeps_whole_files(tmp_path, server, mnist_contents):
    server.files = {f"{name}.gz": gzip.compress(content) for name, content in mnist_contents.items()}
    data = load_mnist(data_home=tmp_path, base_url=server.url, progress=False)
    assert_array_equal(data.train_labels, LABELS)
    assert everything_below(tmp_path / "mnist") == sorted(server.files)
    n_requests = len(server.requests)
    assert n_requests == 4
    load_mnist(data_home=tmp_path, base_url=server.url, progress=False)
    assert len(server.requests) == n_requests


def test_only_missing_files_are_downloaded(tmp_path, server, usps_contents):
    (tmp_path / "zip.train").write_bytes(usps_contents["zip.train"])
    server.files = {"zip.test.gz": gzip.compress(usps_contents["zip.test"])}
    data = load_usps(data_home=tmp_path, base_url=server.url + "/", progress=False)
    assert server.requests == ["zip.test.gz"]
    assert_array_equal(data.test_labels, [9, 0])


def test_files_that_were_compressed_anew_are_as_good(tmp_path, server, usps_contents):
    server.files = {
        f"{name}.gz": gzip.compress(content, level) for level, (name, content) in enumerate(usps_contents.items(), 1)
    }
    assert np.ptp(load_usps(data_home=tmp_path, base_url=server.url, progress=False).train_images) == 1


def test_a_broken_transfer_is_tried_again(tmp_path, server, usps_contents):
    server.files = {f"{name}.gz": gzip.compress(content) for name, content in usps_contents.items()}
    server.n_broken = 2
    data = load_usps(data_home=tmp_path, base_url=server.url, progress=False)
    assert len(data.train_images) == 4
    assert server.requests.count("zip.train.gz") == 3
    assert everything_below(tmp_path) == ["zip.test.gz", "zip.train.gz"]


def test_a_transfer_that_always_breaks_leaves_nothing(tmp_path, server, usps_contents):
    server.files = {f"{name}.gz": gzip.compress(content) for name, content in usps_contents.items()}
    server.n_broken = 99
    with pytest.raises(DataNotFoundError, match=r"zip.train.gz not found .* downloading failed 4 times") as caught:
        load_usps(data_home=tmp_path, base_url=server.url, progress=False)
    assert server.url in str(caught.value)
    assert f"into {tmp_path / 'usps'}" in str(caught.value)
    assert everything_below(tmp_path) == []


def test_a_wrong_checksum_is_refused_and_leaves_nothing(tmp_path, server, usps_contents):
    server.files = {f"{name}.gz": gzip.compress(content) for name, content in usps_contents.items()}
    server.files["zip.train.gz"] = gzip.compress(usps_contents["zip.train"].replace(b"0.5", b"0.4", 1))
    with pytest.raises(DataFileError, match=r"zip.train.gz is refused: the content has SHA-256 .* Nothing was kept"):
        load_usps(data_home=tmp_path, base_url=server.url, progress=False)
    assert everything_below(tmp_path) == []


def test_an_error_page_is_refused(tmp_path, server, usps_contents):
    server.files = {"zip.train.gz": b"<html>maintenance</html>"}
    with pytest.raises(DataFileError, match="not a gzip file"):
        load_usps(data_home=tmp_path, base_url=server.url, progress=False)
    server.files = {}
    with pytest.raises(DataNotFoundError, match="404"):
        load_usps(data_home=tmp_path, base_url=server.url, progress=False)
    assert everything_below(tmp_path) == []


def test_a_server_that_is_not_there(tmp_path, server, usps_contents):
    with Server() as other:
        url = other.url
    with pytest.raises(DataNotFoundError, match="downloading failed 4 times"):
        load_usps(data_home=tmp_path, base_url=url, progress=False)
    assert everything_below(tmp_path) == []


def test_a_home_that_cannot_be_written(tmp_path, server, usps_contents):
    server.files = {f"{name}.gz": gzip.compress(content) for name, content in usps_contents.items()}
    (tmp_path / "usps").write_text("a file where the folder should be")
    with pytest.raises(DataNotFoundError, match="could not be written"):
        load_usps(data_home=tmp_path, base_url=server.url, progress=False)


def test_without_pooch_the_extra_is_named(tmp_path, monkeypatch, usps_contents):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataNotFoundError, match=r"pip install 'polytrain-paper\[data\]'.*Put zip.train.gz"):
        load_usps(data_home=tmp_path)


def test_progress_bar(tmp_path, server, usps_contents, capsys):
    pytest.importorskip("tqdm")
    server.files = {f"{name}.gz": gzip.compress(content) for name, content in usps_contents.items()}
    load_usps(data_home=tmp_path, base_url=server.url)
    assert "100%" in capsys.readouterr().err
