"""Serves the built site as a page of the Hub, under /services/site/.

python hub/site_service.py book/_build/html 8003
"""

import sys

from tornado.ioloop import IOLoop
from tornado.web import Application, RedirectHandler, StaticFileHandler

folder, port = sys.argv[1:]
PREFIX = "/services/site/"
pages = (PREFIX + "(.*)", StaticFileHandler, {"path": folder, "default_filename": "index.html"})
Application([(PREFIX.rstrip("/"), RedirectHandler, {"url": PREFIX}), pages]).listen(int(port), "127.0.0.1")
IOLoop.current().start()
