"""A term on a Hub in one go, and a learner who tries every door. The tests run in the order in which they stand."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from running_hub import ASSIGNMENT, Hub
from set_up import COURSE_ID, INSTRUCTOR, LEARNERS

ADA, BEN, CLEO = LEARNERS
RIGHT = "def double(x):\n    return 2 * x"
ANSWERS = {ADA: RIGHT, BEN: "def double(x):\n    return x + 2", CLEO: RIGHT}
POINTS = {ADA: 5, BEN: 0, CLEO: 5}  # test-two (2, with a hidden part) and test-minus-one (3)

pytestmark = pytest.mark.timeout(900)


def work_of(hub: Hub, name: str) -> Path:
    return hub.home(name) / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"


def answer(path: Path, source: str) -> None:
    """Writes the function and the essay, as the learner would in JupyterLab."""
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        match cell["metadata"].get("nbgrader", {}).get("grade_id"):
            case "double":
                cell["source"] = source
            case "essay":
                cell["source"] = "Because it is twice as much."
    path.write_text(json.dumps(notebook))


def test_the_instructor_releases_and_three_learners_fetch_validate_and_hand_in(hub: Hub) -> None:
    teacher = hub.person(INSTRUCTOR)
    assert teacher.post(f"formgrader/api/assignment/{ASSIGNMENT}/assign")["success"]
    assert teacher.post(f"formgrader/api/assignment/{ASSIGNMENT}/release")["success"]
    for name in LEARNERS:
        learner = hub.person(name)
        (offered,) = learner.get("assignments", course_id=COURSE_ID)["value"]
        assert (offered["assignment_id"], offered["status"]) == (ASSIGNMENT, "released")
        assert learner.post("assignments/fetch", course_id=COURSE_ID, assignment_id=ASSIGNMENT)["success"]
        answer(work_of(hub, name), ANSWERS[name])
        checked = learner.post("assignments/validate", path=f"{ASSIGNMENT}/{ASSIGNMENT}.ipynb")["value"]
        assert ("failed" in checked) == (POINTS[name] == 0)
        assert learner.post("assignments/submit", course_id=COURSE_ID, assignment_id=ASSIGNMENT)["success"]


def test_only_the_instructor_sees_an_instructors_tools_in_the_menus(hub: Hub, browser: Browser) -> None:
    for name, sees in ((ADA, False), (INSTRUCTOR, True)):
        person = hub.person(name)
        with browser.new_context() as context:
            for one in person.web.cookies.jar:
                context.add_cookies([{"name": one.name, "value": one.value or "", "url": f"{hub.url}{one.path}"}])
            page = context.new_page()
            page.goto(f"{hub.url}/user/{name}/lab")
            page.locator("#jp-top-panel").get_by_text("Nbgrader", exact=True).click(timeout=120_000)
            menu = page.locator(".lm-Menu-content")
            menu.get_by_text("Assignment List").wait_for()
            assert bool(menu.get_by_text("Formgrader").count()) == sees
        assert (person.status("formgrader/") == 200) == sees


def test_the_hub_is_killed_and_started_again_and_nothing_is_lost(hub: Hub) -> None:
    hub.kill()
    hub.run()
    for name in LEARNERS:  # the servers went on, the logins hold, and the work is there
        assert hub.person(name).status("lab") == 200
        assert ANSWERS[name] in [cell["source"] for cell in json.loads(work_of(hub, name).read_text())["cells"]]


def test_the_instructor_collects_grades_also_by_hand_and_learners_read_the_feedback(hub: Hub) -> None:
    teacher = hub.person(INSTRUCTOR)
    collected = teacher.post(f"formgrader/api/assignment/{ASSIGNMENT}/collect")
    assert collected["success"], collected
    for name in LEARNERS:
        graded = teacher.post(f"formgrader/api/submission/{ASSIGNMENT}/{name}/autograde")
        assert graded["success"], graded["log"]
        found = teacher.get(f"formgrader/api/submission/{ASSIGNMENT}/{name}")
        assert (found["code_score"], found["needs_manual_grade"]) == (POINTS[name], True)
        handed_in = teacher.get(f"formgrader/api/submitted_notebooks/{ASSIGNMENT}/{ASSIGNMENT}")
        (notebook,) = [one for one in handed_in if one["student"] == name]
        grades = teacher.get("formgrader/api/grades", submission_id=notebook["id"])
        (essay,) = [grade for grade in grades if grade["name"] == "essay"]
        teacher.put(f"formgrader/api/grade/{essay['id']}", manual_score=3, extra_credit=0)
    assert teacher.post(f"formgrader/api/assignment/{ASSIGNMENT}/generate_feedback")["success"]
    assert teacher.post(f"formgrader/api/assignment/{ASSIGNMENT}/release_feedback")["success"]
    for name in LEARNERS:
        learner = hub.person(name)
        assert learner.post("assignments/fetch_feedback", course_id=COURSE_ID, assignment_id=ASSIGNMENT)["success"]
        (page,) = work_of(hub, name).parent.rglob("feedback/**/*.html")
        assert f"Score: {POINTS[name] + 3}.0 / 9.0" in page.read_text()


# --- A learner tries every door -------------------------------------------------------------------------------------


def test_a_learner_cannot_put_a_folder_in_the_place_of_the_courses(hub: Hub) -> None:
    course = hub.folder / "exchange" / COURSE_ID
    assert hub.as_user(CLEO, "mv", course, hub.folder / "exchange" / "mine").returncode != 0
    assert hub.as_user(CLEO, "rm", "-rf", course / "outbound").returncode != 0
    assert hub.as_user(CLEO, "touch", course / "outbound" / "x").returncode != 0
    assert (course / "outbound" / ASSIGNMENT).is_dir()


def test_a_learner_cannot_read_what_another_hands_in_or_gets_back(hub: Hub) -> None:
    inbound = hub.folder / "exchange" / COURSE_ID / "inbound"
    assert len(list(inbound.glob(f"{ADA}+*"))) == 1
    assert hub.as_user(CLEO, "ls", inbound).returncode != 0  # the names alone would lead to the files
    feedback = hub.folder / "exchange" / COURSE_ID / "feedback"
    assert hub.as_user(CLEO, "ls", feedback).returncode != 0
    for command in ("cat {}/*.ipynb", "mv {} mine", "rm -r {}"):  # a name ends in letters drawn at random
        assert hub.as_user(CLEO, "sh", "-c", command.format(f"{inbound}/{ADA}+*")).returncode != 0
    assert len(list(inbound.glob(f"{ADA}+*"))) == 1
    assert hub.as_user(CLEO, "cat", work_of(hub, ADA)).returncode != 0


@pytest.mark.parametrize("what", ["course", "course/source", "course/gradebook.db", ".jupyter", "course/.received"])
def test_a_learner_cannot_enter_the_instructors_home(hub: Hub, what: str) -> None:
    path = hub.home(INSTRUCTOR) / what
    assert path.exists()
    assert hub.as_user(CLEO, "ls", path).returncode != 0
    assert hub.as_user(CLEO, "cat", path).returncode != 0


def test_no_file_that_a_learner_can_read_holds_the_hidden_test(hub: Hub) -> None:
    found = hub.as_user(CLEO, "grep", "-rlsI", "double(2121)", hub.folder)
    assert found.stdout == ""


def test_a_learner_cannot_read_the_hubs_own_files(hub: Hub) -> None:
    assert stat.S_IMODE((hub.folder / "hub").stat().st_mode) == 0o700
    for name in ("passwords.json", "jupyterhub.sqlite", "cookie_secret"):
        assert (hub.folder / "hub" / name).exists()
        assert hub.as_user(CLEO, "cat", hub.folder / "hub" / name).returncode != 0


def test_a_learner_cannot_use_another_persons_server(hub: Hub) -> None:
    for other in (ADA, INSTRUCTOR):
        assert hub.person(CLEO).status(f"/user/{other}/api/contents/") in (403, 404)


def test_a_learner_cannot_change_the_shared_environment_or_the_model_cache(hub: Hub) -> None:
    for path in (hub.folder / "env" / "etc" / "jupyter", hub.folder / "env" / "bin", hub.folder / "models"):
        assert hub.as_user(CLEO, "touch", path / "x").returncode != 0


def test_a_learner_cannot_look_into_the_grading_sandboxs_processes(hub: Hub) -> None:
    grading = f"pgrep -u {INSTRUCTOR} | head -1 | xargs -I PID cat /proc/PID/environ"
    assert hub.as_user(CLEO, "sh", "-c", grading).returncode != 0
