// The two servers of this example, made with the official SDK: "notes" and "orders".
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

const text = (value) => ({ content: [{ type: 'text', text: value }] })

const notes = ['call the printer about the invoice', 'water the plants']

function notesServer() {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool(
    'search',
    { description: 'Finds notes that contain a text.', inputSchema: { text: z.string() } },
    ({ text: wanted }) => text(notes.filter((note) => note.includes(wanted)).join('\n') || 'none'),
  )
  server.registerTool(
    'add',
    { description: 'Adds a note.', inputSchema: { text: z.string() } },
    ({ text: note }) => text(`note ${notes.push(note)} is kept`),
  )
  server.registerResource('all', 'notes://all', { description: 'All notes.' }, ({ href }) => ({
    contents: [{ uri: href, text: notes.join('\n') }],
  }))
  return server
}

const orders = new Map([
  ['o-1', 'three lamps'],
  ['o-2', 'a ladder'],
])

function ordersServer() {
  const server = new McpServer({ name: 'orders', version: '1.0.0' })
  server.registerTool('list', { description: 'Lists open orders.' }, () =>
    text([...orders].map(([id, what]) => `${id}: ${what}`).join('\n')),
  )
  server.registerTool(
    'cancel',
    { description: 'Cancels an order.', inputSchema: { id: z.string() } },
    ({ id }) => text(orders.delete(id) ? `${id} is cancelled` : `there is no ${id}`),
  )
  return server
}

/** Serves one session for each client that begins one; resolves once it listens. */
export function serve(makeServer, port) {
  const sessions = new Map()
  const begin = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    })
    await makeServer().connect(transport)
    return transport
  }
  const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id']
    const transport = id === undefined ? await begin() : sessions.get(id)
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handleRequest(request, response)
  })
  return new Promise((resolve, reject) => {
    http.once('error', reject)
    http.listen(port, '127.0.0.1', () => resolve(http))
  })
}

/** Starts both; `ports` may move them. */
export function startServers({ notes: notesPort = 8101, orders: ordersPort = 8102 } = {}) {
  return Promise.all([serve(notesServer, notesPort), serve(ordersServer, ordersPort)])
}

if (process.argv[1] === import.meta.filename) {
  await startServers()
  console.log('ready')
}
