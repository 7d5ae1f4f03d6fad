"""What an agent does with the Model Context Protocol's own client for Python; a script, for the interpreter that has `mcp`.

``python agent_session.py URL TOKEN MODE`` reads calls of tools as JSON lines (``[name, arguments]``) and writes a line for each
answer, after one for the server. MODE is that of `mcp.Client` (2.x), or "session" for `ClientSession` (1.x and 2.x).
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any


def plain(model: Any) -> Any:
    """The JSON that a client has read."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def say(value: Any) -> None:
    """One line for whoever has started this."""
    print(json.dumps(value), flush=True)


async def call(client: Any, name: str, arguments: Any) -> Any:
    """A tool's answer, or the error of the protocol."""
    try:
        return plain(await client.call_tool(name, arguments))
    except Exception as error:
        told = getattr(error, "error", None)
        if told is None:
            raise
        return {"error": plain(told)}


async def talk(url: str, token: str, mode: str) -> None:
    """Connect, tell of the server and its tools, and call what is asked for."""
    from mcp.client.session import ClientSession
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}))
        transport = streamable_http_client(url, http_client=web)
        client: Any
        if mode == "session":
            streams = await stack.enter_async_context(transport)
            client = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
            started = plain(await client.initialize())
            await client.send_ping()
            protocol, server = started["protocolVersion"], started["serverInfo"]
        else:
            from mcp import Client

            client = await stack.enter_async_context(Client(transport, mode=mode))
            protocol, server = client.protocol_version, client.server_info and plain(client.server_info)
        tools = plain(await client.list_tools())["tools"]
        say({"client": version("mcp"), "protocol": protocol, "server": server, "tools": tools})
        for line in sys.stdin:
            say(await call(client, *json.loads(line)))


if __name__ == "__main__":
    asyncio.run(talk(*sys.argv[1:]))
