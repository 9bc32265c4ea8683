"""A FastMCP server that prints its port when it is ready, or speaks over standard input and output (`stdio`)."""
import asyncio
import socket
import sys

import uvicorn
from fastmcp import Context, FastMCP

server = FastMCP("python")


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def steps(context: Context) -> str:
    for step in range(3):
        await context.report_progress(step, 3)
    return "done"


@server.tool
def fail() -> str:
    raise ValueError("it failed")


@server.resource("test://text")
def text() -> str:
    return "content"


@server.prompt
def greet(name: str) -> str:
    return f"Hello, {name}"


async def main() -> None:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(server.http_app(), log_level="warning")
    serving = asyncio.create_task(uvicorn.Server(config).serve(sockets=[listening]))
    print(listening.getsockname()[1], flush=True)
    await serving


if sys.argv[1:] == ["stdio"]:
    server.run()
else:
    asyncio.run(main())
