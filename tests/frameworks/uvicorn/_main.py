"""Serve on the port given until told to stop."""

import sys

import uvicorn
from _served import app

uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
