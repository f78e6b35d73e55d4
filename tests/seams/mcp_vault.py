"""A real MCP server that is trusted with secrets, and gives them back: in results, errors and resources."""

from __future__ import annotations

import json
import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("vault")


@server.tool()
def connect(host: str, password: str, options: dict[str, str]) -> dict[str, str | dict[str, str]]:
    """Answers with what it was asked, and with what it got from its environment."""
    return {
        "host": host,
        "password": password,
        "options": options,
        "settings": json.dumps({"client_secret": os.environ["VAULT_CLIENT_SECRET"]}),
        "log": f"connected with api_key={os.environ['VAULT_API_KEY']} to {host}",
    }


@server.tool()
def refuse(token: str) -> str:
    """Says what was wrong with it."""
    raise ToolError(f"token={token} has expired; see https://admin:{token}@vault.example/renew")


@server.resource("vault://settings")
def settings() -> str:
    """A dotenv file."""
    return f"# settings\nVAULT_API_KEY={os.environ['VAULT_API_KEY']}\nHOST=vault.example\n"


@server.prompt()
def introduce(name: str) -> str:
    """A question with a key in it."""
    return f'I am {name}. My settings: {{"api_key": "{os.environ["VAULT_API_KEY"]}"}}'


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
