/** Faults of a soak: each lasts for seconds, and concerns only processes that the soak has started. */
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { unlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import type { Random } from '../fuzz/support/random.ts'
import { send } from '../support/http-client.ts'
import type { RealProxy } from '../support/real-proxies.ts'
import { waitFor } from '../support/wait-for.ts'
import type { Ledger } from './ledger.ts'
import type { Resources } from './resources.ts'
import { changing, changingHost } from './routes.ts'
import type { Servers } from './servers.ts'

export interface FaultScene {
  readonly ledger: Ledger
  readonly random: Random
  readonly servers: Servers
  readonly resources: Resources
  readonly pid: number
  /** Where each worker has its kill switch. */
  readonly switches: string
  /** The small disk of the event log and the records; undefined if none could be made. */
  readonly disk: string | undefined
  /** Replaces the manifest that changes. */
  change(content: string): void
}

interface Fault {
  readonly name: string
  /** Resolves when the fault is repaired, or to the reason why it could not be caused. */
  strike(scene: FaultScene): Promise<string | undefined>
}

const gateway = (way: string) => way === 'gateway'

/** How long a frozen process, a full disk and so on last. */
const lengthMs = 3_000

let revision = 0

/** Changes routes, and waits until the change is served. Other traffic must not notice. */
async function reload({ ledger, servers, change }: FaultScene): Promise<void> {
  const expected = `${++revision}`
  change(changing(revision))
  await waitFor(`revision ${expected}`, async () => {
    const headers = { host: changingHost, 'x-tag': ledger.nextTag(), 'x-shape': 'small' }
    const response = await send(servers.gateway, { headers }).catch(() => undefined)
    return response?.headers['x-revision'] === expected
  })
}

/** A real server behind the gateway, and the way of the requests that it serves. */
const anyServer = ({ servers, random }: FaultScene): readonly [string, RealProxy] | undefined => {
  const names = [...servers.upstreams.keys()]
  if (names.length === 0) return undefined
  const name = random.pick(names)
  const program = servers.programs.get(name)
  return program && [name, program]
}

async function killWorker({ switches, resources }: FaultScene): Promise<string | undefined> {
  const before = await resources.metric('sluice_worker_restarts_total')
  const [worker] = readdirSync(switches)
  if (worker === undefined) return 'no worker has a kill switch'
  connect(join(switches, worker)).on('error', () => {})
  await waitFor('another worker', async () => {
    const restarts = await resources.metric('sluice_worker_restarts_total')
    return restarts > before && readdirSync(switches).length === 2
  })
  return undefined
}

/** The most descriptors that the process may have open from now on. */
const limitDescriptors = (pid: number, soft: number | string) =>
  execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`])

export const faults: readonly Fault[] = [
  {
    name: 'reload',
    async strike(scene) {
      for (let change = 0; change < 5; change++) await reload(scene)
      return undefined
    },
  },
  {
    name: 'kill-worker',
    async strike(scene) {
      const { ledger } = scene
      const disturbance = ledger.begin('kill-worker', gateway)
      try {
        return await killWorker(scene)
      } finally {
        ledger.end(disturbance)
      }
    },
  },
  {
    name: 'restart-server',
    async strike(scene) {
      const [name, program] = anyServer(scene) ?? []
      if (name === undefined || program === undefined) return 'there is no real server'
      const disturbance = scene.ledger.begin(`restart ${name}`, (way) => way === name)
      try {
        await program.restart()
      } finally {
        scene.ledger.end(disturbance)
      }
      return undefined
    },
  },
  {
    // Requests wait, but none may fail, and requests to other servers may not even wait.
    name: 'stop-server',
    async strike(scene) {
      const [, program] = anyServer(scene) ?? []
      if (program === undefined) return 'there is no real server'
      program.signal('STOP')
      try {
        await after(lengthMs)
      } finally {
        program.signal('CONT')
      }
      return undefined
    },
  },
  {
    name: 'few-descriptors',
    async strike({ ledger, pid, resources }) {
      const before = /(\d+)\s+\d+$/.exec(
        execFileSync('prlimit', ['--pid', `${pid}`, '--nofile', '--noheadings', '-o', 'SOFT,HARD'])
          .toString()
          .trim(),
      )?.[1]
      if (before === undefined) return 'prlimit does not say the limit'
      const disturbance = ledger.begin('few-descriptors', gateway)
      limitDescriptors(pid, resources.descriptors + 5)
      try {
        await after(lengthMs)
      } finally {
        limitDescriptors(pid, before)
        ledger.end(disturbance)
      }
      return undefined
    },
  },
  {
    // The process gets half of the time, in slices of 50 ms. No request may fail.
    name: 'less-cpu',
    async strike({ pid }) {
      const end = performance.now() + lengthMs
      try {
        while (performance.now() < end) {
          process.kill(pid, 'SIGSTOP')
          await after(50)
          process.kill(pid, 'SIGCONT')
          await after(50)
        }
      } finally {
        process.kill(pid, 'SIGCONT')
      }
      return undefined
    },
  },
  {
    // The log continues in memory, and no request may fail.
    name: 'full-disk',
    async strike(scene) {
      const { disk } = scene
      if (disk === undefined) return 'no small disk could be mounted, which needs root'
      const filler = join(disk, 'filler')
      await fill(filler)
      try {
        await reload(scene)
        await after(lengthMs)
        await reload(scene)
      } finally {
        await unlink(filler)
      }
      await reload(scene)
      return undefined
    },
  },
]

export const faultNames = faults.map(({ name }) => name)

/** Writes until the disk is full. */
async function fill(path: string): Promise<void> {
  for (let piece = 1 << 20; piece >= 1; piece >>= 2) {
    for (;;) {
      const isFull = await writeFile(path, Buffer.alloc(piece), { flag: 'a' }).then(
        () => false,
        () => true,
      )
      if (isFull) break
    }
  }
}
