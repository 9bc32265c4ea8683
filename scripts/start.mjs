// The quick start of the README: builds what is stale, starts the sample upstreams and the gateway
// on examples/quickstart, and says what to try once it is ready.
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { startUpstream, upstreams } from '../examples/quickstart/upstream.mjs'

const root = join(import.meta.dirname, '..')
const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed', '--to-run'], {
  cwd: root,
  stdio: 'inherit',
})
if (build.status !== 0) process.exit(build.status ?? 1)

const text = `
Try, in another terminal:

  curl -i http://127.0.0.1:8080/cart -H 'host: shop.example.com'
      200, {"upstream":"shop","method":"GET","path":"/cart","host":"shop.example.com"}, x-served-by: sluice

  curl -i http://127.0.0.1:8080/healthz -H 'host: shop.example.com'
      200, ok (answered by the gateway: a GatewayPolicy on the rule "health")

  curl -i http://127.0.0.1:8080/api/items -H 'host: eu.echo.example.com'
      200, {"upstream":"echo","method":"GET","path":"/v1/items","host":"eu.echo.example.com"}

  curl -i http://127.0.0.1:8080/ -H 'host: unknown.example.com'
      404, route not found

Then edit a file in examples/quickstart: the next request follows it. Ctrl-C ends everything.
`

for (const [name, port] of upstreams) {
  await startUpstream(name, port).catch((error) => {
    console.error(`The sample upstream "${name}" cannot listen on port ${port}: ${error.message}`)
    process.exit(1)
  })
}

const gateway = spawn(
  join(root, 'bin', 'sluice'),
  ['run', '-f', 'examples/quickstart', ...process.argv.slice(2)],
  {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  },
)
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => gateway.kill(signal))
gateway.on('exit', (code) => process.exit(code ?? 1))

/** Polls the readiness address until it says yes; the gateway prints why it does not. */
async function waitUntilReady() {
  for (;;) {
    const answer = await fetch('http://127.0.0.1:15021/healthz/ready').catch(() => undefined)
    if (answer?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
await waitUntilReady()
console.log(text)
