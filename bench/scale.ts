/**
 * Many routes: 10,000 and 50,000 HTTPRoutes, 20 in each ListenerSet of one Gateway, through `sluice run`.
 * Claim: the cost of a start and the memory grow as the number of routes, and one more change costs little
 * more than with fewer routes.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../test/support/gateway.ts'
import { gateway, httpRoute, manifest } from '../test/support/manifests.ts'
import type { BenchContext, Row } from './harness.ts'
import { launcher } from './harness.ts'
import { cpuTime, memoryOf } from './proxy/process.ts'
import type { SceneObject } from './scenes.ts'

const routesPerSet = 20

const group = 'gateway.networking.k8s.io'

/** A ListenerSet and its routes, which answer without an upstream; the header tells the revision. */
function listenerSet(name: string, port: number, revision = 0): SceneObject[] {
  const listeners = [{ name: 'web', port, protocol: 'HTTP', hostname: `${name}.example.com` }]
  const set = {
    apiVersion: `${group}/v1`,
    kind: 'ListenerSet',
    metadata: { name },
    spec: { parentRef: { name: 'edge' }, listeners },
  }
  const filters = [
    {
      type: 'ResponseHeaderModifier',
      responseHeaderModifier: { set: [{ name: 'x-revision', value: `${revision}` }] },
    },
    { type: 'RequestRedirect', requestRedirect: { statusCode: 302, hostname: 'other.example' } },
  ]
  const routes = Array.from({ length: routesPerSet }, (_, n) =>
    httpRoute(`${name}-${n}`, {
      parentRefs: [{ group, kind: 'ListenerSet', name }],
      rules: [{ matches: [{ path: { type: 'PathPrefix', value: `/p${n}` } }], filters }],
    }),
  )
  return [set, ...routes]
}

class Running {
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #port: number
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  private constructor(child: ChildProcess, folder: string, port: number) {
    this.#child = child
    this.#folder = folder
    this.#port = port
  }

  /** Resolves once the gateway is ready. */
  static async start(sets: number, folder: string): Promise<Running> {
    const port = await freePort()
    const allowedListeners = { namespaces: { from: 'All' } }
    writeFileSync(join(folder, 'edge.yaml'), manifest(gateway(port, { allowedListeners })))
    for (let n = 0; n < sets; n++)
      writeFileSync(join(folder, `set-${n}.yaml`), manifest(...listenerSet(`set-${n}`, port)))
    const addresses = ['admin', 'stats', 'readiness'].flatMap((name) => [
      `--${name}-address`,
      '127.0.0.1:0',
    ])
    const child = spawn(
      launcher,
      [
        'run',
        '-f',
        folder,
        '--ephemeral',
        '--workers',
        '1',
        '--console-address',
        'off',
        ...addresses,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    await new Promise<void>((resolve, reject) => {
      let text = ''
      child.stderr.on('data', (piece) => {
        text += piece
        if (/^ready$/m.test(text)) resolve()
      })
      child.once('close', () => reject(new Error(`the gateway ended:\n${text}`)))
    })
    return new Running(child, folder, port)
  }

  /** CPU time of the process in seconds. */
  cpu(): number {
    return cpuTime(this.#child) / 1e9
  }

  /** Resident memory in MB after 20 s of rest, in which threads return memory that they no longer need. */
  async restingMemory(): Promise<number> {
    for (let before = Number.NaN; ; ) {
      const now = this.cpu()
      if (now - before < 0.3) break
      before = now
      await delay(20_000)
    }
    return memoryOf(this.#child.pid) / 1024 ** 2
  }

  /** Milliseconds from renaming the manifest of a set into place to the first response by its new routes. */
  async change(name: string, revision: number): Promise<number> {
    const path = join(this.#folder, `${name}.yaml`)
    writeFileSync(`${path}.new`, manifest(...listenerSet(name, this.#port, revision)))
    const begun = performance.now()
    renameSync(`${path}.new`, path)
    while ((await this.#revisionOf(name)) !== `${revision}`) await delay(2)
    return performance.now() - begun
  }

  #revisionOf(name: string): Promise<string | undefined> {
    const headers = { host: `${name}.example.com` }
    const options = {
      host: '127.0.0.1',
      port: this.#port,
      path: '/p7',
      agent: this.#agent,
      headers,
    }
    return new Promise((resolve, reject) => {
      get(options, (response) => {
        response.resume()
        response.once('end', () => resolve(response.headers['x-revision']?.toString()))
      }).once('error', reject)
    })
  }

  async stop(): Promise<void> {
    this.#agent.destroy()
    const ended = new Promise((resolve) => this.#child.once('close', resolve))
    this.#child.kill('SIGKILL')
    await ended
  }
}

interface Figures {
  readonly cpu: number
  readonly memory: number
  readonly edits: readonly number[]
  readonly additions: readonly number[]
}

async function measure(sets: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const running = await Running.start(sets, folder)
  try {
    const cpu = running.cpu()
    const memory = await running.restingMemory()
    const edits: number[] = []
    const additions: number[] = []
    for (let n = 1; n <= 7; n++) {
      edits.push(await running.change(`set-${n}`, n))
      additions.push(await running.change(`more-${n}`, n))
    }
    return { cpu, memory, edits, additions }
  } finally {
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

export default async function scale({ quick, note }: BenchContext): Promise<Row[]> {
  const sizes = quick ? [50, 250] : [500, 2_500]
  const found: Figures[] = []
  for (const sets of sizes) {
    found.push(await measure(sets))
    note(`${sets * routesPerSet} routes measured`)
  }
  const [fewer, more] = found as [Figures, Figures]
  return sizes.flatMap((sets, at): Row[] => {
    const { cpu, memory, edits, additions } = at === 0 ? fewer : more
    const peer = { name: `${(sizes[0] ?? 0) * routesPerSet} routes` }
    const routes = sets * routesPerSet
    // The larger size has five times as many routes; growth beyond that is more than the work.
    const grown = (own: number, other: number, atMost: number) =>
      at > 0 && { peer: { ...peer, samples: [other] }, bound: { atMost }, own: [own] }
    return [
      { id: `scale.start.cpu.${routes}`, unit: 's', own: [cpu], ...grown(cpu, fewer.cpu, 6) },
      {
        id: `scale.resident.${routes}`,
        unit: 'MB',
        own: [memory],
        ...grown(memory, fewer.memory, 5),
      },
      { id: `scale.edit.${routes}`, unit: 'ms', own: edits },
      { id: `scale.one-more-set.${routes}`, unit: 'ms', own: additions },
    ]
  })
}
