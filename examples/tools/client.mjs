// Lists the tools that a user may use, and calls some of them: client.mjs TOKEN
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const [token] = process.argv.slice(2)
const client = new Client({ name: 'example', version: '1.0.0' })
const transport = new StreamableHTTPClientTransport(new URL('http://127.0.0.1:8080/tools'), {
  requestInit: { headers: { authorization: `Bearer ${token}` } },
})
await client.connect(transport)

async function call(name, args = {}) {
  try {
    const { content } = await client.callTool({ name, arguments: args })
    console.log(`${name}: ${content.map(({ text }) => text).join(' ')}`)
  } catch (error) {
    console.log(`${name}: ${error.message}`)
  }
}

const { tools } = await client.listTools()
console.log(tools.map(({ name }) => name).join(', '))
await call('calendar_today')
await call('library_findBooks', { query: { author: 'Ann & Bob', subjects: ['law', 'sea'] } })
await call('library_lend', { path: { id: '../admin' } })
await transport.terminateSession()
await client.close()
