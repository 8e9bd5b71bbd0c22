import pytest

from polytrain_paper.experiments.report import describe_run
from polytrain_paper.experiments.settings import Settings


@pytest.mark.parametrize("inits", [["linear", "linear"], ["linear", "random"]])
def test_the_report_names_the_starts(inits):
    described = describe_run(Settings.default("usps"), [{"init": init} for init in inits])
    assert any(f"{' and '.join(dict.fromkeys(inits))} start" in line for line in described)
