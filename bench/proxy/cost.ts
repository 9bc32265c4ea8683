/** Measures the CPU time of a proxy per request, and checks that the proxy routes as expected. */
import type { BenchUpstream } from './event-upstream.ts'
import { askOnce, type Dial, type Load, type ScenarioName, scenarios, startLoad } from './load.ts'
import type { MeasuredProxy } from './process.ts'

/** Connections that are kept busy. */
export const connections = 32

/** Every proxy must do the same before it is measured. */
export async function check({ name, port }: MeasuredProxy, dial?: Dial): Promise<void> {
  const head = await askOnce(port, scenarios.get.request, dial)
  const isServed = head.startsWith('HTTP/1.1 200') && /x-served-by: /i.test(head)
  const other = scenarios.get.request.toString('latin1').replace('x-team: a', 'x-team: b')
  const refused = await askOnce(port, Buffer.from(other, 'latin1'), dial)
  if (isServed && refused.startsWith('HTTP/1.1 404')) return
  throw new Error(`${name} does not route as it should:\n${head}\n\n${refused}`)
}

/** Microseconds of the proxy's CPU per response, or per event of a stream. */
export async function costOf(
  proxy: MeasuredProxy,
  scenario: ScenarioName,
  upstream: BenchUpstream,
  seconds: number,
  dial?: Dial,
): Promise<number> {
  const load = startLoad(proxy.port, scenarios[scenario], connections, dial)
  const done = scenario === 'sse' ? upstream.events : load.responses
  return cpuPer(done, proxy, load, upstream, seconds)
}

/** Microseconds of the proxy's CPU per response of a load that has just been started. */
export function cpuPerResponse(
  proxy: MeasuredProxy,
  load: Load,
  upstream: BenchUpstream,
  seconds: number,
): Promise<number> {
  return cpuPer(load.responses, proxy, load, upstream, seconds)
}

/** Microseconds of the proxy's CPU for each unit that `done` counts. */
export async function cpuPer(
  done: () => number,
  proxy: MeasuredProxy,
  load: Load,
  upstream: Pick<BenchUpstream, 'endStreams'>,
  seconds: number,
): Promise<number> {
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  await pause(200)
  const before = { cpu: proxy.cpuTime(), done: done() }
  await pause(seconds * 1000)
  const spent = proxy.cpuTime() - before.cpu
  const count = done() - before.done
  await load.stop()
  upstream.endStreams()
  return spent / 1000 / count
}
