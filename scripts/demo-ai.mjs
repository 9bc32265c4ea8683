// `npm run demo:ai`: starts mock vendors and the gateway on examples/ai, and shows masking, a limit
// of tokens and a failover by requests. Needs no account. Goes on until Ctrl-C; `--once`: until the
// requests are answered.
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { tour } from '../examples/ai/tour.mjs'
import { startVendor, vendors } from '../examples/ai/vendors.mjs'

const root = join(import.meta.dirname, '..')
const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
  cwd: root,
  stdio: 'inherit',
})
if (build.status !== 0) process.exit(build.status ?? 1)

for (const [name, port] of vendors) {
  await startVendor(name, port).catch((error) => {
    console.error(`The mock of ${name} cannot listen on port ${port}: ${error.message}`)
    process.exit(1)
  })
}

const given = process.argv.slice(2)
const gateway = spawn(
  join(root, 'bin', 'sluice'),
  ['run', '-f', 'examples/ai', ...given.filter((one) => one !== '--once')],
  { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
)
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => gateway.kill(signal))
gateway.on('exit', (code) => process.exit(code ?? 1))

async function waitUntilReady() {
  for (;;) {
    const answer = await fetch('http://127.0.0.1:15021/healthz/ready').catch(() => undefined)
    if (answer?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
await waitUntilReady()
await tour('http://127.0.0.1:8080', (line) => console.log(`\n${line}`))
if (given.includes('--once')) gateway.kill('SIGTERM')
else {
  console.log(`
Point an SDK at it, with any key:

  new OpenAI({ baseURL: 'http://127.0.0.1:8080/assistant/v1', apiKey: 'any' })
  new Anthropic({ baseURL: 'http://127.0.0.1:8080/assistant', apiKey: 'any' })

Ctrl-C ends everything.`)
}
