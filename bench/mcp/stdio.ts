/**
 * Claim: a call of a tool of a command adds at most 0.3 milliseconds to the median, compared with the same command
 * asked over its standard input, at 200 calls a second. One target, one worker; proxy and load on a core each.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../test/support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  mcpBackend,
  toBackend,
} from '../../test/support/manifests.ts'
import { type BenchContext, interleave, launcher, median, pinSelf, type Row } from '../harness.ts'
import { loadCore, startProxyProcess } from '../proxy/process.ts'
import { McpBenchClient } from './client.ts'

const callsPerSecond = 200
/** Calls before the first that counts: V8 compiles what runs often. */
const warmUp = 3_000
const command = [process.execPath, join(import.meta.dirname, 'stdio-server.mjs')] as const

/** Sends calls at a fixed rate, one after the other, and returns the median of their milliseconds. */
async function medianOf(call: () => Promise<unknown>, seconds: number): Promise<number> {
  const took: number[] = []
  const begun = performance.now()
  for (let sent = 0; performance.now() - begun < seconds * 1000; sent++) {
    const from = performance.now()
    await call()
    took.push(performance.now() - from)
    const due = begun + ((sent + 1) * 1000) / callsPerSecond
    if (due > performance.now()) await delay(due - performance.now())
  }
  return median(took)
}

/** The command without a gateway. */
class DirectServer {
  readonly #child: ChildProcessWithoutNullStreams
  #answered: () => void = () => {}

  constructor() {
    this.#child = spawn(command[0], command.slice(1))
    this.#child.stdout.on('data', () => this.#answered())
  }

  call(): Promise<void> {
    return new Promise((resolve) => {
      this.#answered = resolve
      const params = { name: 'tool-1', arguments: { query: 'x' } }
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      this.#child.stdin.write(`${JSON.stringify(message)}\n`)
    })
  }

  stop(): void {
    this.#child.kill()
  }
}

async function startGateway(folder: string) {
  const manifests = join(folder, 'manifests')
  mkdirSync(manifests)
  const port = await freePort()
  const objects = [
    gateway(port),
    mcpBackend('mcp', [{ name: 's', stdio: { command } }]),
    httpRoute('mcp', { rules: [{ backendRefs: [toBackend('mcp')] }] }),
  ]
  writeFileSync(join(manifests, 'all.yaml'), manifest(...objects))
  const own = ['--admin-address', 'off', '--stats-address', '127.0.0.1:0']
  const more = ['--readiness-address', '127.0.0.1:0', '--bind-address', '127.0.0.1']
  const options = ['--ephemeral', '--workers', '1', '--stdio-servers', 'true', ...own, ...more]
  const args = [launcher, 'run', '-f', manifests, ...options]
  return startProxyProcess({ name: 'sluice', version: '', port, command: args })
}

export default async function stdio({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const direct = new DirectServer()
  const proxy = await startGateway(folder)
  const client = await McpBenchClient.open(proxy.port, '/mcp')
  await client.initialize()
  const seconds = quick ? 0.5 : 2
  try {
    for (let n = 0; n < warmUp; n++) await client.send(client.call)
    for (let n = 0; n < warmUp; n++) await direct.call()
    const latency = await interleave(rounds, {
      through: () => medianOf(() => client.send(client.call), seconds),
      direct: () => medianOf(() => direct.call(), seconds),
    })
    return [
      {
        id: 'mcp.stdio.added',
        unit: 'ms',
        own: latency.through.map((one, at) => one - (latency.direct[at] ?? Number.NaN)),
        bound: { atMost: 0.3 },
        note: `median at ${callsPerSecond} calls/s after ${warmUp} calls; without the gateway ${median(latency.direct).toFixed(3)} ms`,
      },
    ]
  } finally {
    client.close()
    direct.stop()
    await proxy.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
