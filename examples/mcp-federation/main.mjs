// Runs the whole example: starts both servers and the gateway, and connects with the official client.
// `bin/with-node node examples/mcp-federation/main.mjs`
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { startServers } from '../mcp/servers.mjs'

const root = join(import.meta.dirname, '..', '..')
const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
  cwd: root,
  stdio: 'inherit',
})
if (build.status !== 0) process.exit(build.status ?? 1)

await startServers()
const gateway = spawn(
  join(root, 'bin', 'sluice'),
  ['run', '-f', 'examples/mcp-federation', '--ephemeral'],
  { cwd: root, stdio: 'ignore' },
)
// The gateway ends with this script, whatever the reason.
process.on('exit', () => gateway.kill())
gateway.on('exit', (code) => process.exit(code ?? 1))

/** Connects as soon as the gateway serves. */
async function connect(path) {
  for (;;) {
    const client = new Client({ name: 'example', version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:8080${path}`))
    const isConnected = await client.connect(transport).then(
      () => true,
      () => false,
    )
    if (isConnected) return client
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

for (const path of ['/mcp', '/mcp/orders', '/search']) {
  const client = await connect(path)
  const { tools } = await client.listTools()
  console.log(`${path}: ${tools.map(({ name }) => name).join(', ')}`)
}
const client = await connect('/search')
const call = async (name, args) => {
  const { content } = await client.callTool({ name, arguments: args })
  return content[0].text
}
const { tools } = JSON.parse(await call('search_tools', { query: 'cancel an order' }))
console.log(`search_tools: ${tools.map(({ name }) => name).join(', ')}`)
console.log(
  `call_tool: ${await call('call_tool', { name: tools[0].name, arguments: { id: 'o-2' } })}`,
)
process.exit(0)
