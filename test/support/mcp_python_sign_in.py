"""Signs in at URLs with the SDK's own OAuth, and prints what the tool `who` returns there as JSON, a line each."""
import asyncio
import json
import sys
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from fastmcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

REDIRECT = "http://127.0.0.1:1/callback"


class Storage:
    """Keeps tokens and the client for one run."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def sign_in(server) -> None:
    responses = []

    async def browse(url):
        async with httpx2.AsyncClient(follow_redirects=False) as browser:
            for _ in range(5):
                if url.startswith(REDIRECT):
                    responses.append(parse_qs(urlsplit(url).query))
                    return
                url = urljoin(url, (await browser.get(url)).headers["location"])

    async def response():
        found = responses.pop()
        return AuthorizationCodeResult(**{name: found[name][0] for name in ("code", "state", "iss")})

    metadata = OAuthClientMetadata(
        client_name="test",
        redirect_uris=[REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(server, metadata, Storage(), browse, response)
    async with Client(server, auth=auth) as client:
        result = await client.call_tool("who", {})
        print(json.dumps(result.content[0].text))


async def main() -> None:
    for server in sys.argv[1:]:
        await sign_in(server)


asyncio.run(main())
