import subprocess
import sys

import pytest

import polytrain


def test_importing_the_package_does_not_load_the_optional_parts():
    code = (
        "import sys, polytrain;"
        "assert 'load' in dir(polytrain) and 'export' in dir(polytrain);"
        "late_parts = ('polytrain.models.file', 'polytrain.estimators.saving', 'polytrain.export', 'onnx');"
        "early = [n for n in sys.modules if n.startswith(late_parts)];"
        "polytrain.load, polytrain.ModelFileError, polytrain.export.to_c;"
        "late = [n for n in sys.modules if n.startswith(('onnx', 'skl2onnx'))];"
        "sys.exit(str(early + late) if early + late else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_other_names_are_still_refused():
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        polytrain.laod  # noqa: B018
