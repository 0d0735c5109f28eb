"""The Hub of one class on one machine. `hub/set_up.py` has made the folder that SERVING_HUB_FOLDER names.

For a class with accounts of its own, change the authenticator and the spawner here; see hub/README.md.
"""

import json
import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821 - JupyterHub provides it

here = Path(os.environ["SERVING_HUB_HERE"])  # this folder, in the repository
folder = Path(os.environ["SERVING_HUB_FOLDER"])
port = int(os.environ.get("SERVING_HUB_PORT", "8000"))
users = {path.name for path in (folder / "homes").iterdir()}
instructors = {name for name in users if (folder / "homes" / name / "course").is_dir()}
passwords = json.loads((folder / "hub" / "passwords.json").read_text())

c.JupyterHub.bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{port + 1}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{port + 2}"
c.ConfigurableHTTPProxy.command = [str(here / "node_modules" / ".bin" / "configurable-http-proxy")]
c.ConfigurableHTTPProxy.auth_token = passwords["proxy"]
c.ConfigurableHTTPProxy.pid_file = str(folder / "hub" / "proxy.pid")

# What the Hub must remember. A restart finds the running servers again instead of ending them.
c.JupyterHub.db_url = f"sqlite:///{folder / 'hub' / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(folder / "hub" / "cookie_secret")
c.JupyterHub.cleanup_servers = False

c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = passwords["learners"]
c.SharedPasswordAuthenticator.admin_password = passwords["instructor"]
c.Authenticator.allowed_users = users
c.Authenticator.admin_users = instructors

c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.cmd = [str(folder / "env" / "bin" / "jupyterhub-singleuser")]
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = c.Spawner.http_timeout = 300  # seconds; many servers start at once when a class begins
c.Spawner.environment = {
    "LLM_COURSE_CACHE": str(folder / "models"),  # one copy of the model for all
    "PATH": f"{folder / 'env' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
}

# The built site, for everybody who can reach the Hub.
site = here.parent / "book" / "_build" / "html"
if site.is_dir():
    c.JupyterHub.services = [
        {
            "name": "site",
            "url": f"http://127.0.0.1:{port + 3}",
            "command": [sys.executable, str(here / "site_service.py"), str(site), str(port + 3)],
        }
    ]
