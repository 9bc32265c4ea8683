/** Starts what a bench of proxies measures, and stops and removes all of it at the end. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, pinSelf, type Row } from '../harness.ts'
import { type StartedPeers, startPeers } from './peers.ts'
import { loadCore, type MeasuredProxy, type Peer } from './process.ts'
import { type SluiceOptions, startSluice } from './sluice.ts'

export class Rig {
  readonly #disposals: (() => unknown)[] = []

  /** A temporary folder. */
  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
    this.#disposals.push(() => rmSync(folder, { recursive: true, force: true }))
    return folder
  }

  /** Closes it at the end. */
  use<Closable extends { close(): unknown }>(closable: Closable): Closable {
    this.#disposals.push(() => closable.close())
    return closable
  }

  async proxy(starting: Promise<MeasuredProxy>): Promise<MeasuredProxy> {
    const proxy = await starting
    this.#disposals.push(() => proxy.stop())
    return proxy
  }

  /** Our own gateway, with `others` routes beside the measured one. */
  sluice(upstream: number, others = 10, options?: SluiceOptions): Promise<MeasuredProxy> {
    return this.proxy(startSluice(this.folder(), upstream, others, options))
  }

  async peers(peers: readonly Peer[]): Promise<StartedPeers> {
    const started = await startPeers(peers)
    for (const proxy of started.running) this.#disposals.push(() => proxy.stop())
    return started
  }

  /** Ends in the order of a stack. */
  async dispose(): Promise<void> {
    for (const dispose of this.#disposals.reverse()) await dispose()
  }
}

/** Measures with this process on the core of the load. */
export async function withRig(
  { note }: Pick<BenchContext, 'note'>,
  measure: (rig: Rig) => Promise<Row[]>,
): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const rig = new Rig()
  try {
    return await measure(rig)
  } finally {
    await rig.dispose()
  }
}
