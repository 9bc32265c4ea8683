/**
 * CPU time per response of several proxies, measured in turn in slices of a tenth of a second: a
 * virtual machine can be half as fast for some seconds, and must be so for all of them alike.
 * Connections stay open from slice to slice.
 */
import { connections as usualConnections } from './cost.ts'
import { type Dial, type PausableLoad, type Scenario, startLoad } from './load.ts'
import type { MeasuredProxy } from './process.ts'

const sliceMs = 100

export interface SliceOptions {
  readonly rounds: number
  /** What each load gets of a round. */
  readonly seconds: number
  /** What each gets before the first: compilers need some ten thousand requests. */
  readonly warmUpSeconds: number
}

/** A load that is under way, and the proxy that it is put on. */
export interface SlicedLoad {
  readonly proxy: MeasuredProxy
  readonly load: PausableLoad
}

/** Microseconds per response of one scenario, once a round, in the order of the proxies. */
export function slicedCosts(
  proxies: readonly MeasuredProxy[],
  {
    scenario,
    dial,
    connections = usualConnections,
    ...options
  }: SliceOptions & { scenario: Scenario; dial?: Dial; connections?: number },
): Promise<number[][]> {
  const loads = proxies.map((proxy) => ({
    proxy,
    load: startLoad(proxy.port, scenario, connections, dial),
  }))
  return slicedLoads(loads, options)
}

/** The same for loads of any kind; stops them. */
export async function slicedLoads(
  loads: readonly SlicedLoad[],
  { rounds, seconds, warmUpSeconds }: SliceOptions,
): Promise<number[][]> {
  await Promise.all(loads.map(({ load }) => load.pause()))
  const turn = async (index: number, sum: Sum) => {
    const { proxy, load } = loads[index] ?? {}
    if (proxy === undefined || load === undefined) return
    const before = { cpu: proxy.cpuTime(), done: load.responses() }
    load.resume()
    await new Promise((resolve) => setTimeout(resolve, sliceMs))
    await load.pause()
    sum.cpu += proxy.cpuTime() - before.cpu
    sum.done += load.responses() - before.done
  }
  const round = async (length: number) => {
    const sums = loads.map(() => ({ cpu: 0, done: 0 }))
    const slices = Math.max(1, Math.round((length * 1000) / sliceMs))
    for (let slice = 0; slice < slices; slice++) {
      // Changes the order, so that no load always follows the same one.
      for (let at = 0; at < sums.length; at++) {
        const index = (at + slice) % sums.length
        await turn(index, sums[index] ?? { cpu: 0, done: 0 })
      }
    }
    return sums.map(({ cpu, done }) => cpu / 1000 / done)
  }
  await round(warmUpSeconds)
  const samples: number[][] = loads.map(() => [])
  for (let count = 0; count < rounds; count++) {
    for (const [index, cost] of (await round(seconds)).entries()) samples[index]?.push(cost)
  }
  await Promise.all(loads.map(({ load }) => load.stop()))
  return samples
}

interface Sum {
  cpu: number
  done: number
}
