"""Files about the project say the same things, and forms and workflows are well-formed."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import polytrain
from scripts_as_modules import load_script

REPOSITORY = Path(__file__).resolve().parents[1]
if not (REPOSITORY / ".github").is_dir():
    pytest.skip("the files of the repository are not beside these tests", allow_module_level=True)
yaml = pytest.importorskip("yaml")

WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
PROJECTS = {
    folder: tomllib.loads((REPOSITORY / folder / "pyproject.toml").read_text("utf-8"))["project"]
    for folder in (".", "paper")
}


def read(path):
    return yaml.safe_load((REPOSITORY / path).read_text("utf-8"))


def triggers(workflow):
    return workflow[True]  # YAML reads the word "on" so


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_careful(path):
    workflow = read(path)
    assert workflow["name"]
    assert triggers(workflow)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 60
        assert job.get("permissions", {}).keys() <= {"id-token"}
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"])


def test_names_in_workflows_are_there():
    targets = set(re.findall(r"^([a-z-]+):.*##", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    asked = {"lint", "docs", *read(".github/workflows/tests.yml")["jobs"]["tested"]["strategy"]["matrix"]["target"]}
    assert asked <= targets
    for path in WORKFLOWS:
        for name in re.findall(r"scripts/\w+\.py", path.read_text("utf-8")):
            assert (REPOSITORY / name).is_file()


def test_all_promised_versions_and_systems_are_tested():
    matrix = read(".github/workflows/tests.yml")["jobs"]["newest"]["strategy"]["matrix"]
    for project in PROJECTS.values():
        classifiers = project["classifiers"]
        promised = [
            line.split(" :: ")[-1] for line in classifiers if line.startswith("Programming Language :: Python :: 3.")
        ]
        assert matrix["python"] == promised
        assert project["requires-python"] == f">={promised[0]}"
        systems = {line.split(" :: ")[-1] for line in classifiers if line.startswith("Operating System")}
        assert systems == {"Linux", "MacOS", "Windows"}
    assert {os.split("-")[0] for os in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_only_what_publishes_may_ask_for_a_token():
    jobs = {(path.name, name): job for path in WORKFLOWS for name, job in read(path)["jobs"].items()}
    publishing = {
        key for key, job in jobs.items() if any("pypi-publish" in step.get("uses", "") for step in job["steps"])
    }
    assert publishing == {("release.yml", "publish"), ("release.yml", "publish-paper")}
    assert publishing == {key for key, job in jobs.items() if "permissions" in job}
    for key in publishing:
        assert jobs[key]["environment"]
        assert "refs/tags/v" in jobs[key]["if"]


@pytest.mark.parametrize("path", [".readthedocs.yaml", ".github/dependabot.yml", ".pre-commit-config.yaml"])
def test_settings_can_be_read(path):
    assert read(path)


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_issue_forms_are_forms(name):
    form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)


def test_versions_agree():
    assert set(load_script("release_version").versions().values()) == {polytrain.__version__}


def test_a_tag_of_another_version_is_refused(capsys):
    release_version = load_script("release_version")
    assert release_version.main([f"v{polytrain.__version__}"]) == 0
    assert capsys.readouterr().out == f"{polytrain.__version__}\n"
    assert release_version.main(["v99.0"]) == 1
    assert "99.0  the tag" in capsys.readouterr().err


def test_addresses_agree():
    urls = PROJECTS["."]["urls"]
    citation, recipe = read("CITATION.cff"), read("conda/recipe.yaml")["about"]
    assert citation["url"] == recipe["documentation"] == urls["Documentation"]
    assert citation["repository-code"] == recipe["homepage"] == recipe["repository"] == urls["Source"]
    assert citation["license"] == recipe["license"] == PROJECTS["."]["license"] == PROJECTS["paper"]["license"]
    assert (REPOSITORY / "LICENSE").read_text("utf-8") == (REPOSITORY / "paper" / "LICENSE").read_text("utf-8")
    links = read(".github/ISSUE_TEMPLATE/config.yml")["contact_links"]
    assert all(link["url"].startswith((urls["Documentation"], urls["Source"])) for link in links)


def test_the_recipe_needs_what_the_package_needs():
    needs = dict(line.split() for line in read("conda/recipe.yaml")["requirements"]["run"])
    assert needs.pop("python") == PROJECTS["."]["requires-python"]
    assert needs == {Requirement(line).name: str(Requirement(line).specifier) for line in PROJECTS["."]["dependencies"]}


# --- the oldest versions ----------------------------------------------------------------------------------------------


def test_oldest_versions_are_the_lower_bounds():
    found = load_script("minimum_versions").constraints(PROJECTS["."], [])
    assert found == sorted(line.replace(">=", "==") for line in PROJECTS["."]["dependencies"])


def test_oldest_versions_of_extras_that_name_each_other():
    project = {
        "name": "mine",
        "dependencies": ["numpy>=2.0"],
        "optional-dependencies": {
            "all": ["mine[one,two]", "numpy>=2.1,<3"],
            "one": ["dask[array]>=2025.1", "free", "mine[all]"],
            "two": ["torch==2.13.0"],
        },
    }
    constraints = load_script("minimum_versions").constraints
    assert constraints(project, ["all"]) == ["dask==2025.1", "numpy==2.1", "torch==2.13.0"]
    assert constraints(project, []) == ["numpy==2.0"]
    with pytest.raises(SystemExit, match="has no extra 'three'; it has all, one, two"):
        constraints(project, ["three"])


def test_the_page_on_installing_names_the_lower_bounds():
    page = (REPOSITORY / "docs" / "install.md").read_text("utf-8")
    for line in load_script("minimum_versions").constraints(PROJECTS["."], []):
        name, version = line.split("==")
        assert re.search(rf"{name}\s+{re.escape(version)}", page, re.IGNORECASE)
