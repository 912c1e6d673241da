"""A page seen by a real browser, if there is one."""

import json
import os
import re
import shutil
import subprocess
from html import unescape

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

#: In a frame of a phone's width, what the page looks like there; and whatever it failed to load.
PROBE = """
<script>
const failed = [];
addEventListener("error", event => failed.push(String(event.target.src || event.message)), true);
addEventListener("load", () => {
  const boxes = [...document.querySelectorAll("figure")].map(figure => {
    const svg = figure.querySelector("svg"), box = svg ? svg.getBoundingClientRect() : null;
    return {
      id: figure.id, width: box ? box.width : 0, height: box ? box.height : 0,
      shapes: svg ? svg.querySelectorAll("path").length : 0,
      texts: svg ? svg.querySelectorAll("text").length : 0,
      ink: svg ? getComputedStyle(svg).color : "",
    };
  });
  const style = getComputedStyle(document.body);
  parent.postMessage(JSON.stringify({
    figures: boxes, failed, sections: [...document.querySelectorAll("section")].map(s => s.id),
    width: document.documentElement.clientWidth, needed: document.documentElement.scrollWidth,
    background: style.backgroundColor, ink: style.color,
    requests: performance.getEntriesByType("resource").map(entry => entry.name),
  }), "*");
});
</script>
"""

FRAME = """<!DOCTYPE html><html><body><iframe src="probe.html" style="width:{width}px;height:800px">
</iframe><pre id="found"></pre><script>
addEventListener("message", event => {{
  document.getElementById("found").textContent = event.data;
}});
</script></body></html>"""


def find_browser():
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def look_at(page, folder, *, width, dark):
    """What a browser without network makes of a page: its figures, colours and widths."""
    text = page.read_text(encoding="utf-8").replace("</head>", f"{PROBE}</head>", 1)
    (folder / "probe.html").write_text(text, encoding="utf-8")
    (folder / "frame.html").write_text(FRAME.format(width=width), encoding="utf-8")
    command = [
        find_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--virtual-time-budget=20000", "--window-size=1200,900", "--dump-dom",
        (folder / "frame.html").as_uri(),
    ]  # fmt: skip
    environment = {**os.environ, "HOME": str(folder)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    found = re.search(r'<pre id="found">(.*?)</pre>', run.stdout, re.DOTALL)
    assert found is not None, run.stderr[-2000:]
    return json.loads(unescape(found.group(1)))
