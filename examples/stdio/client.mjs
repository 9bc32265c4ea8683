// Connects with the official client, and prints what the tools of the command return.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const [url] = process.argv.slice(2)

async function session(name, ...tools) {
  const client = new Client({ name: 'example', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(url))
  await client.connect(transport)
  for (const tool of tools) {
    const result = await client.callTool({ name: tool }).catch(({ message }) => message)
    const text = typeof result === 'string' ? result : result.content[0].text
    console.log(`${name} ${tool}: ${text}`)
  }
  await transport.terminateSession().catch(() => {})
  await client.close()
}

await session('first', 'add', 'add', 'variables')
await session('second', 'add', 'crash')
