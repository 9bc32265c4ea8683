// What the demos share: they build if needed, start the mock vendors, and run a gateway on an example.
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { startVendor, vendorPorts } from '../examples/ai/vendors.mjs'

const root = join(import.meta.dirname, '..')
const launcher = join(root, 'bin', 'sluice')

/** Starts the mocks; ends the process if it cannot be built, or if a port is taken. */
export async function prepare() {
  const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed', '--to-run'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (build.status !== 0) process.exit(build.status ?? 1)
  for (const port of vendorPorts) {
    await startVendor(port).catch((error) => {
      console.error(`A mock vendor cannot listen on port ${port}: ${error.message}`)
      process.exit(1)
    })
  }
}

/** Resolves once the gateway is ready. Its end, and Ctrl-C, end the demo, unless `kill` has ended it. */
export async function startGateway(...args) {
  const child = spawn(launcher, ['run', ...args], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const stop = (signal) => child.kill(signal)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop)
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let isKilled = false
  ended.then((code) => isKilled || process.exit(code ?? 1))
  for (let isReady = false; !isReady; ) {
    const answer = await fetch('http://127.0.0.1:15021/healthz/ready').catch(() => undefined)
    isReady = answer?.status === 200
    if (!isReady) await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return {
    stop: () => stop('SIGTERM'),
    async kill() {
      isKilled = true
      for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, stop)
      stop('SIGKILL')
      await ended
    },
  }
}

/** Runs a command to its end, and returns what it prints. */
export function sluice(...args) {
  const { status, stdout, stderr } = spawnSync(launcher, args, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`sluice ${args.join(' ')}: ${stderr}`)
  return stdout
}
