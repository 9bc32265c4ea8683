/**
 * How soon an edit is in force: from the moment a manifest is renamed into place to the first answer
 * by the new route, through a running `sluice run`, with 10 and with 1,000 other routes.
 * Claim: it does not grow with the number of routes that were not edited.
 */
import { Agent, get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort, startGateway } from '../test/support/gateway.ts'
import { httpRoute, manifest } from '../test/support/manifests.ts'
import { type BenchContext, quantile, type Row } from './harness.ts'
import { routeObject, surroundings } from './scenes.ts'

const routesPerFile = 50

/** A direct response whose header has the number of the edit that is in force. */
function edited(revision: number): string {
  const set = [{ name: 'x-revision', value: `${revision}` }]
  const filters = [
    { type: 'ResponseHeaderModifier', responseHeaderModifier: { set } },
    {
      type: 'RequestRedirect',
      requestRedirect: { statusCode: 302, hostname: 'elsewhere.example' },
    },
  ]
  return manifest(httpRoute('edited', { hostnames: ['edited.example.com'], rules: [{ filters }] }))
}

function manifestsWith(others: number, port: number): Record<string, string> {
  const files: Record<string, string> = {
    'gateway.yaml': manifest(...surroundings(port)),
    'edited.yaml': edited(0),
  }
  for (let first = 0; first < others; first += routesPerFile) {
    const count = Math.min(routesPerFile, others - first)
    const routes = Array.from({ length: count }, (_, n) => routeObject(first + n))
    files[`routes-${first}.yaml`] = manifest(...routes)
  }
  return files
}

function revisionAt(port: number, agent: Agent): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'edited.example.com' }
    get({ port, host: '127.0.0.1', agent, headers }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.headers['x-revision']?.toString()))
    }).once('error', reject)
  })
}

/** Milliseconds of each edit. */
async function measure(others: number, edits: number): Promise<number[]> {
  const port = await freePort()
  const running = await startGateway({ manifests: manifestsWith(others, port) })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const times: number[] = []
  try {
    const inForce = async (revision: number) => {
      while ((await revisionAt(port, agent)) !== `${revision}`) await delay(1)
    }
    await inForce(0)
    for (let revision = 1; revision <= edits; revision++) {
      const content = edited(revision)
      const begun = performance.now()
      running.write('edited.yaml', content)
      await inForce(revision)
      times.push(performance.now() - begun)
      // Edits come alone: not while the source is still within the quiet time of the one before.
      await delay(20)
    }
  } finally {
    agent.destroy()
    await running.dispose()
  }
  return times
}

export default async function edit({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  const sizes = quick ? [10, 100] : [10, 1_000]
  const editsPerRound = quick ? 7 : 20
  const samples = new Map<number, number[][]>(sizes.map((size) => [size, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [size, times] of samples) times.push(await measure(size, editsPerRound))
    note(`round ${round + 1} of ${rounds}`)
  }
  // One figure a round, so that rows are like all others; p99 is of all edits together.
  const p50 = (size: number | undefined) =>
    (samples.get(size ?? 0) ?? []).map((times) => quantile(times, 0.5))
  const [small, large] = sizes
  return [
    ...sizes.flatMap((size): Row[] => [
      { id: `edit.p50.${size}`, unit: 'ms', own: p50(size) },
      {
        id: `edit.p99.${size}`,
        unit: 'ms',
        own: [quantile((samples.get(size) ?? []).flat(), 0.99)],
        note: `of ${editsPerRound * rounds} edits`,
      },
    ]),
    {
      id: 'edit.growth',
      unit: 'ms',
      own: p50(large),
      peer: { name: `the same with ${small} routes`, samples: p50(small) },
      bound: { atMost: 1.3 },
    },
  ]
}
