/**
 * Start-up: from starting the process to `ready`, with the quick start, with 1,000 and with 5,000 routes: on no
 * log, and with 1,000 routes also on the log of a run that was killed and on the snapshot of one that was stopped.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../test/support/gateway.ts'
import { manifest } from '../test/support/manifests.ts'
import { type BenchContext, interleave, launcher, type Row } from './harness.ts'
import { routeObject, surroundings } from './scenes.ts'

const root = join(import.meta.dirname, '..')
interface Started {
  readonly ms: number
  /** Ends it with a signal. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Starts a gateway, and waits until it is ready. */
export function start(manifests: string, logFile: string, program = launcher): Promise<Started> {
  const addresses = ['--stats-address', '127.0.0.1:0', '--readiness-address', '127.0.0.1:0']
  const more = ['--bind-address', '127.0.0.1', '--admin-address', 'off', ...addresses]
  const begun = performance.now()
  const child: ChildProcess = spawn(
    program,
    ['run', '-f', manifests, '--log-file', logFile, ...more],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const end = (signal: 'SIGTERM' | 'SIGKILL') => {
    child.kill(signal)
    return ended
  }
  return new Promise((resolve, reject) => {
    let said = ''
    child.stderr?.on('data', (text) => {
      said += text
      if (/^ready$/m.test(said)) resolve({ ms: performance.now() - begun, end })
    })
    void ended.then(() => reject(new Error(`the gateway ended:\n${said}`)))
  })
}

/** The quick start on a port that is free. */
export function writeQuickStart(folder: string, port: number): void {
  cpSync(join(root, 'examples', 'quickstart'), folder, { recursive: true })
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace('port: 8080', `port: ${port}`))
}

function writeRoutes(folder: string, port: number, count: number): void {
  mkdirSync(folder)
  writeFileSync(join(folder, 'gateway.yaml'), manifest(...surroundings(port)))
  for (let first = 0; first < count; first += 50) {
    const length = Math.min(50, count - first)
    const routes = Array.from({ length }, (_, n) => routeObject(first + n))
    writeFileSync(join(folder, `routes-${first}.yaml`), manifest(...routes))
  }
}

/** What operators and tests wait for, in milliseconds. */
const boundsMs: Readonly<Record<string, number>> = {
  'start.quickstart': 350,
  'start.1000-routes.no-log': 600,
  'start.5000-routes.no-log': 1_500,
}

export default async function startUp({ rounds, quick }: BenchContext): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const [count, many] = quick ? [100, 500] : [1_000, 5_000]
  const [quickStart, routes, manyRoutes] = ['quickstart', 'routes', 'many-routes'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  writeQuickStart(quickStart, await freePort())
  writeRoutes(routes, await freePort(), count)
  writeRoutes(manyRoutes, await freePort(), many)
  let logs = 0
  const freshLog = () => join(folder, `log-${logs++}`, 'events.db')
  const timed = async (manifests: string, logFile: string, signal: 'SIGTERM' | 'SIGKILL') => {
    const { ms, end } = await start(manifests, logFile)
    await end(signal)
    return ms
  }
  // Each candidate leaves the state from which the next one starts.
  let log = ''
  try {
    const samples = await interleave(rounds, {
      'start.quickstart': () => timed(quickStart, freshLog(), 'SIGTERM'),
      [`start.${count}-routes.no-log`]: () => {
        log = freshLog()
        return timed(routes, log, 'SIGKILL')
      },
      [`start.${count}-routes.log`]: () => timed(routes, log, 'SIGTERM'),
      [`start.${count}-routes.snapshot`]: () => timed(routes, log, 'SIGTERM'),
      [`start.${many}-routes.no-log`]: () => timed(manyRoutes, freshLog(), 'SIGKILL'),
    })
    return Object.entries(samples).map(([id, own]) => {
      const atMost = boundsMs[id]
      return { id, unit: 'ms', own, ...(atMost !== undefined && { bound: { atMost } }) }
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
