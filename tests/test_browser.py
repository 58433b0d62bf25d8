"""A learner's way through notebook 03 in a real browser: JupyterLab, its menus, a widget, an exercise.

Runs the course as handed out, in a folder of its own. Screenshots stay in tests/artifacts.
"""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

from course_kernels.lab.exercises import stubs
from stored import ROOT
from tests.answers import tools

NOTEBOOK = "notebooks/03_one_row_one_program.ipynb"
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.xdist_group("browser")]


@contextmanager
def jupyterlab(course, home):
    """A JupyterLab that serves the course; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": str(course),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0", "--LabApp.expose_app_in_browser=True",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={course}",
        f"--LabApp.app_settings_dir={ROOT / 'scripts' / 'jupyterlab'}",
    ]  # fmt: skip
    log = open(home / "server.log", "w")
    server = subprocess.Popen(command, env=environment, cwd=course, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{address}/api/status", timeout=2).read()
                break
            except OSError:
                assert server.poll() is None, (home / "server.log").read_text()
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()


@pytest.fixture
def lab(handed_out, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with jupyterlab(handed_out, home) as address:
        yield address, handed_out


@pytest.fixture
def page(chromium, tmp_path):
    from playwright.sync_api import sync_playwright

    options = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(60_000)
        page.outside = []  # requests to anywhere but the server
        page.on("request", lambda r: None if "127.0.0.1" in r.url or r.url.startswith(("data:", "blob:")) else
                page.outside.append(r.url))  # fmt: skip
        yield page
        browser.close()


READY = """(path) => {
    const panel = [...(window.jupyterapp?.shell.widgets('main') ?? [])]
        .find(w => w.context && w.context.path === path);
    return panel?.sessionContext.session?.kernel?.status === 'idle';
}"""


def open_notebook(page, address):
    page.goto(f"{address}/lab/tree/{NOTEBOOK}")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.wait_for_function(READY, arg=NOTEBOOK)  # else "Run" asks which kernel to start


def menu(page, name, item):
    page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{name}$")).click()
    page.locator(".lm-Menu-item", has_text=re.compile(f"^{item}")).first.click()


COUNT = """([path, start]) => {
    const panel = [...window.jupyterapp.shell.widgets('main')]
        .find(w => w.context && w.context.path === path);
    const code = panel.content.widgets.filter(c => c.model.type === 'code');
    const found = start
        ? code.find(c => c.model.sharedModel.getSource().startsWith(start))
        : code[code.length - 1];
    return found.model.executionState === 'running' ? null : found.model.executionCount;
}"""


def execution_count(page, start=None):
    """The execution count of a cell (the last, without a start), null while it is running or waits."""
    return page.evaluate(COUNT, [NOTEBOOK, start])


def wait_for_run(page, start=None, before=None):
    """Until a cell has run since `before`."""
    deadline = time.monotonic() + 120
    while execution_count(page, start) in (None, before):
        assert time.monotonic() < deadline, "the cell did not end"
        page.wait_for_timeout(100)
    page.wait_for_timeout(300)  # for its output to be drawn


def cell(page, start):
    """The cell whose source starts with this text, scrolled to (JupyterLab draws only what is near)."""
    index = page.evaluate(
        """async ([path, start]) => {
            const app = window.jupyterapp;
            const panel = [...app.shell.widgets('main')].find(w => w.context && w.context.path === path);
            const cells = panel.content.widgets;
            const index = cells.findIndex(c => c.model.sharedModel.getSource().startsWith(start));
            panel.content.activeCellIndex = index;
            await panel.content.scrollToItem(index, 'center');
            return index;
        }""",
        [NOTEBOOK, start],
    )
    assert index >= 0, f"no cell starts with {start!r}"
    found = page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')
    found.wait_for()
    found.scroll_into_view_if_needed()
    return found


def type_into(page, start, text):
    """Replace a cell's text by typing into its editor."""
    editor = cell(page, start).locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def run(page, start):
    cell(page, start).locator(".cm-content").click()
    before = execution_count(page, start)
    page.keyboard.press("Control+Enter")
    wait_for_run(page, start, before)
    return cell(page, start)


def theme(page, name):
    page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
    page.wait_for_timeout(1500)  # the setting is written, and holds for the next page too


def shot(page, artifacts, start, name):
    cell(page, start)
    page.wait_for_timeout(500)
    page.screenshot(path=str(artifacts / f"{name}.png"))


def test_a_learner_in_notebook_03(lab, page, artifacts):
    address, course = lab
    open_notebook(page, address)
    assert not page.locator(".jp-Dialog, .Toastify__toast").count(), "nothing pops up"

    menu(page, "Run", "Run All Cells")
    wait_for_run(page)
    text = cell(page, 'check("fused_softmax")').inner_text()
    assert "Not done yet" in text

    # The slider, by keyboard: the value and the picture change.
    explorer = cell(page, "from course_kernels.lab import explore")
    handle = explorer.locator(".noUi-handle").first
    handle.wait_for()
    label, picture = explorer.locator(".widget-readout").first, explorer.locator("svg[aria-label]").first
    before = (label.inner_text(), picture.get_attribute("aria-label"))
    assert len(before[1]) > 40, "the picture has alt text"
    handle.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "([e, old]) => e.querySelector('svg[aria-label]').getAttribute('aria-label') !== old",
        arg=[explorer.element_handle(), before[1]],
    )
    assert label.inner_text() != before[0]
    shot(page, artifacts, "from course_kernels.lab import explore", "explorer-light")

    # A wrong answer is diagnosed, a right one passes.
    head = "%%exercise fused_softmax"
    type_into(page, head, f"{head}\n{tools.wrong_text('fused_softmax', 'padding with 0')}")
    run(page, head)
    text = run(page, 'check("fused_softmax")').inner_text()
    assert "Not yet" in text and "Masked lanes were loaded as 0" in text and "Proven" in text
    shot(page, artifacts, 'check("fused_softmax")', "diagnosis-light")
    type_into(page, head, f"{head}\n{stubs.solution_text('fused_softmax')}")
    run(page, head)
    text = run(page, 'check("fused_softmax")').inner_text()
    assert "Passed" in text and "registers a thread" in text
    shot(page, artifacts, 'check("fused_softmax")', "passed-light")

    # Reopened in another theme, the answer is still there: in the cell, in the file, in the history.
    page.keyboard.press("Escape")
    page.keyboard.press("Control+s")
    page.wait_for_timeout(1000)
    theme(page, "JupyterLab Dark")
    open_notebook(page, address)
    page.wait_for_selector('body[data-jp-theme-light="false"]', state="attached")
    assert "numerator = tl.exp" in cell(page, head).inner_text()
    assert (course / "exercises" / "fused_softmax.py").read_text() == stubs.solution_text("fused_softmax")
    assert any(
        "other=0.0" in p.read_text() for p in (course / "exercises" / ".history").glob("fused_softmax-*")
    )
    run(page, "# On Colab")
    run(page, head)
    assert "Passed" in run(page, 'check("fused_softmax")').inner_text()
    shot(page, artifacts, 'check("fused_softmax")', "passed-dark")
    explorer = run(page, "from course_kernels.lab import explore")
    explorer.locator(".noUi-handle").first.wait_for()
    shot(page, artifacts, "from course_kernels.lab import explore", "explorer-dark")

    assert not page.outside, f"something was fetched from elsewhere: {page.outside}"
    stored = (course / NOTEBOOK).stat().st_size
    assert stored < 300_000, f"the notebook as saved has {stored} bytes"
