/** What the process of the gateway holds: memory, descriptors, connections. Linux only. */
import { readdirSync } from 'node:fs'
import { memoryOf } from '../../bench/proxy/process.ts'
import { waitFor } from '../support/wait-for.ts'
import type { Ledger } from './ledger.ts'

const megabyte = 1024 * 1024

/** Metrics that are 0 if no request is under way. */
const busyMetrics = [
  'sluice_downstream_connections',
  'sluice_downstream_http2_streams',
  'sluice_upstream_pool_streams',
  'sluice_upstream_pool_connections{state="busy"}',
] as const

export class Resources {
  readonly #pid: number
  readonly #stats: string
  readonly #memory: { readonly at: number; readonly megabytes: number }[] = []
  /** Descriptors without those of connections to upstreams, before any traffic. */
  #base = 0

  constructor(pid: number, stats: string) {
    this.#pid = pid
    this.#stats = stats
  }

  async begin(): Promise<void> {
    this.#base = await this.#ownDescriptors()
  }

  sample(): void {
    this.#memory.push({ at: performance.now(), megabytes: memoryOf(this.#pid) / megabyte })
  }

  get descriptors(): number {
    return readdirSync(`/proc/${this.#pid}/fd`).length
  }

  /** Sum of all series of a metric, or of those with a label. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`http://${this.#stats}/metrics`)).text()
    return sumOf(text, name)
  }

  async #ownDescriptors(): Promise<number> {
    const open = await this.metric('sluice_upstream_connections')
    return this.descriptors - open
  }

  /** The median between two times. */
  memoryBetween(from: number, to: number): number {
    const found = this.#memory.filter(({ at }) => at >= from && at <= to)
    const sorted = found.map(({ megabytes }) => megabytes).sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  }

  /** Waits until nothing is under way, and reports what is left open. */
  async checkQuiet(ledger: Ledger): Promise<void> {
    let left = ''
    await waitFor('a quiet gateway', async () => {
      const text = await (await fetch(`http://${this.#stats}/metrics`)).text()
      const open = busyMetrics.map((name) => [name, sumOf(text, name)] as const)
      left = open.flatMap(([name, value]) => (value === 0 ? [] : [`${name} ${value}`])).join(', ')
      const buffers = sumOf(text, 'sluice_read_buffers')
      const connections = sumOf(text, 'sluice_upstream_connections')
      // A connection that is kept for later requests keeps its buffer.
      if (buffers > connections) left += ` ${buffers} read buffers of ${connections} connections`
      const descriptors = await this.#ownDescriptors()
      if (left === '' && descriptors > this.#base + spareDescriptors) {
        left = `${descriptors} descriptors without those of upstreams, ${this.#base} at the start`
      }
      return left === ''
    }).catch(() => {
      const text = `is left open without traffic: ${left}`
      ledger.report({ invariant: 'quiet', exchange: 'the gateway', text, bytes: '' })
    })
  }
}

/** Files that a gateway may open later, such as segments of its log and its records. */
const spareDescriptors = 10

function sumOf(text: string, name: string): number {
  const [, bare = '', label = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(name) ?? []
  const lines = text.split('\n').filter((line) => line.replace(/[{ ].*/, '') === bare)
  const values = lines.filter((line) => line.includes(label)).map((line) => line.split(' ').at(-1))
  return values.reduce((sum, value) => sum + Number(value), 0)
}
