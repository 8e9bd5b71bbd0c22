import json

import pytest
from comparison import seal


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
