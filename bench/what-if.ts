/**
 * `sluice what-if` on 50,000 records of a real gateway with 100 routes, on one core: at most 5 s, and its
 * memory does not grow with the records. Once with a change that concerns every request, so that each is
 * simulated twice, and once with one that concerns a single route. A judgement of `changeProtection` by the same
 * records: at most 3 s.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, launcher, startGateway } from '../test/support/gateway.ts'
import { type Manifest, manifest, policy } from '../test/support/manifests.ts'
import { type BenchContext, interleave, pinned, type Row } from './harness.ts'
import type { JudgedChanges, JudgedRun } from './judge-run.ts'
import { cpuTime, memoryOf } from './proxy/process.ts'
import { routeObject, surroundings } from './scenes.ts'

const run = promisify(execFile)

const routes = 100
const connections = 16

/** Rules that apply to all requests: one reads a header, one reads the path. */
const rules = (team: string): Manifest =>
  policy('everywhere', 'Gateway/edge', {
    traffic: {
      authorization: {
        action: 'Deny',
        policy: {
          matchExpressions: [
            `request.headers["x-team"] == "${team}"`,
            'request.path.contains("/secret")',
          ],
        },
      },
    },
  })

const ofOneRoute = policy('one', 'HTTPRoute/route-7', {
  traffic: { directResponse: { status: 503 } },
})

const objects = (port: number, upstream: number): Manifest[] => [
  ...surroundings(port, [upstream]),
  ...Array.from({ length: routes }, (_, n) => routeObject(n)),
  rules('bad'),
]

function requestText(n: number): string {
  const route = n % routes
  const lines = [
    `GET /api/v${route % 3}/resource-${route}/items/${n}?page=${n % 7} HTTP/1.1`,
    `host: service-${Math.floor(route / 10)}.example.com`,
    'user-agent: bench/1.0',
    'accept: */*',
    'authorization: Bearer 0123456789abcdef0123456789abcdef',
    `x-team: ${n % 10 === 0 ? 'bad' : n % 10 === 1 ? 'worse' : 'good'}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** Sends requests over connections that are kept; each sends the next one after the response to the last. */
async function sendAll(port: number, count: number): Promise<void> {
  let sent = 0
  const run = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      const next = () => {
        if (sent < count) socket.write(requestText(sent++))
        else socket.end()
      }
      let text = ''
      socket.setNoDelay(true)
      socket.on('connect', next)
      socket.on('error', reject)
      socket.on('close', () => resolve())
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        const head = text.indexOf('\r\n\r\n')
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
        if (head < 0 || text.length < head + 4 + length) return
        text = ''
        next()
      })
    })
  await Promise.all(Array.from({ length: connections }, run))
}

async function startUpstream(): Promise<Server> {
  const server = createServer((_, response) => response.end('hello'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

interface Run {
  /** CPU time of the process in milliseconds. */
  readonly ms: number
  readonly megabytes: number
  readonly requests: { readonly total: number; readonly changed: number }
}

/** Judges two changes that concern every request, one after the other, in a new process on one core. */
async function judged(changes: JudgedChanges): Promise<JudgedRun> {
  const script = join(import.meta.dirname, 'judge-run.ts')
  const command = pinned(0, [process.execPath, '--no-warnings', script, JSON.stringify(changes)])
  const [program = '', ...args] = command
  return JSON.parse((await run(program, args)).stdout)
}

/** Runs the command on one core, and reads its CPU time and its largest memory while it runs. */
async function whatIf(logFile: string, records: string, candidate: string): Promise<Run> {
  const args = ['--log-file', logFile, '-f', candidate, '--overlay', '-o', 'json']
  const [program = '', ...rest] = pinned(0, [launcher, 'what-if', ...args, '--requests', records])
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  let largest = 0
  let ms = 0
  child.stdout.on('data', (chunk) => {
    text += chunk
  })
  const timer = setInterval(() => {
    largest = memoryOf(child.pid, 'VmHWM') || largest
    if (child.exitCode === null) ms = cpuTime(child) / 1e6
  }, 20)
  await new Promise((resolve) =>
    child.once('exit', resolve).once('exit', () => clearInterval(timer)),
  )
  return { ms, megabytes: largest / 1024 ** 2, requests: JSON.parse(text).requests }
}

export default async function bench({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  const count = quick ? 5_000 : 50_000
  const [port, upstream] = [await freePort(), await startUpstream()]
  const records = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const running = await startGateway({
    manifests: objects(port, (upstream.address() as AddressInfo).port),
    args: ['--record', 'all', '--record-dir', records, '--workers', '1'],
  })
  try {
    await sendAll(port, count)
    await running.stop()
    note(`${count} records`)
    const everywhere = join(running.folder, 'everywhere.yaml')
    const one = join(running.folder, 'one.yaml')
    writeFileSync(everywhere, manifest(rules('worse')))
    writeFileSync(one, manifest(ofOneRoute))
    const memory: number[] = []
    const timed = async (candidate: string) => {
      const { ms, megabytes, requests } = await whatIf(running.logFile, records, candidate)
      const { total, changed } = requests
      if (total !== count || changed === 0) throw new Error(`${changed} of ${total} changed`)
      memory.push(megabytes)
      return ms
    }
    const second: number[] = []
    const judge = async () => {
      const changes = [rules('worse'), rules('good')]
      const own = objects(port, (upstream.address() as AddressInfo).port)
      const { ms, requests } = await judged({ records, objects: own, changes })
      if (requests !== count) throw new Error(`${requests} of ${count} requests were judged`)
      second.push(ms[1] ?? Number.NaN)
      return ms[0] ?? Number.NaN
    }
    const samples = await interleave(rounds, {
      everywhere: () => timed(everywhere),
      one: () => timed(one),
      judge,
    })
    const bound = quick ? {} : { bound: { atMost: 5_000 } }
    const judgeBound = quick ? {} : { bound: { atMost: 3_000 } }
    return [
      { id: `what-if.every-request.${count}`, unit: 'ms', own: samples.everywhere, ...bound },
      { id: `what-if.one-route.${count}`, unit: 'ms', own: samples.one, ...bound },
      { id: `judge.first.${count}`, unit: 'ms', own: samples.judge, ...judgeBound },
      { id: `judge.second.${count}`, unit: 'ms', own: second },
      { id: `what-if.memory.${count}`, unit: 'MB', own: memory },
    ]
  } finally {
    await running.dispose()
    upstream.close()
    rmSync(records, { recursive: true, force: true })
  }
}
