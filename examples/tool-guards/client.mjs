// Calls tools with the official client, whose user approves the first call that needs it.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const client = new Client(
  { name: 'example', version: '1.0.0' },
  { capabilities: { elicitation: {} } },
)
const answers = ['accept', 'decline']
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  const action = answers.shift()
  console.log(`the user is asked: ${params.message} ${action}`)
  return { action, content: {} }
})
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]))
await client.connect(transport)

async function call(name, args) {
  const { content } = await client.callTool({ name, arguments: args })
  console.log(`${name}: ${content.map(({ text }) => text).join('\n')}`)
}

await call('notes_add', { text: 'ask ada@example.com for the invoice' })
await call('notes_search', { text: 'invoice' })
await call('orders_cancel', { id: 'o-2' })
await call('orders_cancel', { id: 'o-1' })
for (let at = 0; at < 3; at++) await call('orders_list', {})
await transport.terminateSession()
await client.close()
