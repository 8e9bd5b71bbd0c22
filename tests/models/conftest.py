import hashlib
import json

import pytest

OPENING = b'{"__metadata__":{"format":"polytrain","sha256":"'


def seal(raw):
    """Put the right checksum into a model file; nothing happens to a file that has no place for one."""
    place = 8 + len(OPENING)
    if raw[8:place] != OPENING or len(raw) < place + 64:
        return raw
    digest = hashlib.sha256(raw[:place] + b"0" * 64 + raw[place + 64 :]).hexdigest().encode()
    return raw[:place] + digest + raw[place + 64 :]


class ModelBytes:
    """A model file taken apart by hand, to be changed and put together again with a right checksum."""

    def __init__(self, raw):
        length = int.from_bytes(raw[:8], "little")
        self.header = json.loads(raw[8 : 8 + length])
        self.body = raw[8 + length :]
        self.metadata = self.header["__metadata__"]
        self.document = json.loads(self.metadata["model"])

    def assemble(self):
        self.metadata["model"] = json.dumps(self.document)
        header = json.dumps(self.header, separators=(",", ":")).encode()
        return seal(len(header).to_bytes(8, "little") + header + self.body)

    def patch(self, name, values):
        """Overwrite an array with one of the same size."""
        start, stop = self.header[name]["data_offsets"]
        assert len(values.tobytes()) == stop - start
        self.body = self.body[:start] + values.tobytes() + self.body[stop:]


@pytest.fixture
def take_apart():
    return ModelBytes


@pytest.fixture
def reseal():
    return seal
