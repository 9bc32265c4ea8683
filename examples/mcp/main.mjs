// Runs the whole example: starts both servers and the gateway, and connects with the official client.
// `bin/with-node node examples/mcp/main.mjs`
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { drive } from './client.mjs'
import { startServers } from './servers.mjs'

const root = join(import.meta.dirname, '..', '..')
const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
  cwd: root,
  stdio: 'inherit',
})
if (build.status !== 0) process.exit(build.status ?? 1)

await startServers()
const gateway = spawn(join(root, 'bin', 'sluice'), ['run', '-f', 'examples/mcp', '--ephemeral'], {
  cwd: root,
  stdio: ['ignore', 'ignore', 'pipe'],
})
// The gateway ends with this script, whatever the reason.
process.on('exit', () => gateway.kill())
let output = ''
gateway.stderr.on('data', (chunk) => {
  output += chunk
})
gateway.on('exit', (code) => {
  if (code !== 0) console.error(output)
  process.exit(code ?? 1)
})

/** Polls the readiness address until it answers 200. */
async function waitUntilReady() {
  for (;;) {
    const answer = await fetch('http://127.0.0.1:15021/healthz/ready').catch(() => undefined)
    if (answer?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
await waitUntilReady()
await drive(new URL('http://127.0.0.1:8080/mcp'), console.log)
gateway.kill('SIGTERM')
