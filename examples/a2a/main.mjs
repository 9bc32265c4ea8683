// Runs the whole example: starts the agents, the MCP servers and the gateway, and connects with the
// official clients. `bin/with-node node examples/a2a/main.mjs`
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { startServers } from '../mcp/servers.mjs'
import { startAgents } from './agents.mjs'
import { drive } from './client.mjs'

const root = join(import.meta.dirname, '..', '..')
const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
  cwd: root,
  stdio: 'inherit',
})
if (build.status !== 0) process.exit(build.status ?? 1)

await Promise.all([startServers(), startAgents()])
const gateway = spawn(join(root, 'bin', 'sluice'), ['run', '-f', 'examples/a2a', '--ephemeral'], {
  cwd: root,
  stdio: 'ignore',
})
// The gateway ends with this script, whatever the reason.
process.on('exit', () => gateway.kill())
gateway.on('exit', (code) => process.exit(code ?? 1))

/** Waits until the gateway is ready, and has the keys that verify cards. */
async function waitUntilReady() {
  for (;;) {
    const card = 'http://127.0.0.1:8080/agents/weather/.well-known/agent-card.json'
    const response = await fetch(card, { headers: { 'a2a-version': '1.0' } }).catch(() => undefined)
    if (response?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
await waitUntilReady()
await drive('http://127.0.0.1:8080', console.log)
process.exit(0)
