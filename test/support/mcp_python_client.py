"""Uses everything that mcp_python_server.py offers at a URL, and prints what came as JSON."""
import asyncio
import json
import sys

from fastmcp import Client


async def main() -> None:
    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total])

    async with Client(sys.argv[1], progress_handler=on_progress) as client:
        failed = await client.call_tool("fail", {}, raise_on_error=False)
        seen = {
            "tools": sorted(tool.name for tool in await client.list_tools()),
            "sum": (await client.call_tool("add", {"a": 1, "b": 2})).data,
            "steps": (await client.call_tool("steps", {})).data,
            "failed": failed.is_error,
            "resource": (await client.read_resource("test://text"))[0].text,
            "prompt": (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content.text,
        }
    print(json.dumps({**seen, "progress": progress}))


asyncio.run(main())
