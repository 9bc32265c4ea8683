// An MCP server over standard input and output, with the SDK of the protocol.
import { writeFileSync } from 'node:fs'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'

const server = new McpServer({ name: 'notes', version: '1.0.0' })
const notes = []

/** Registers a tool without arguments whose result is a text. */
const tool = (name, description, run) =>
  server.registerTool(name, { description }, async () => ({
    content: [{ type: 'text', text: String(await run()) }],
  }))

tool('add', 'Adds a note.', () => {
  notes.push('a note')
  writeFileSync('notes.txt', notes.join('\n'))
  return `${notes.length} in this session`
})
tool('variables', 'Lists variables of the environment.', () =>
  ['NOTES_LANGUAGE', 'SECRET_OF_THE_GATEWAY'].filter((name) => name in process.env).join(', '),
)
tool('crash', 'Ends the server.', () => process.exit(3))

await server.connect(new StdioServerTransport())
