// What this example adds to the servers of examples/mcp: a third MCP server, "calendar", and a REST API, "library".
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { serve } from '../mcp/servers.mjs'

function calendarServer() {
  const server = new McpServer({ name: 'calendar', version: '1.0.0' })
  server.registerTool('today', { description: 'Lists the appointments of today.' }, () => ({
    content: [{ type: 'text', text: '10:00 stocktaking' }],
  }))
  return server
}

/** Responds with the request line, so that everyone sees what the API got. */
const library = createServer((request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ got: `${request.method} ${request.url}` }))
})

await serve(calendarServer, 8103)
library.listen(8104, '127.0.0.1', () => console.log('ready'))
