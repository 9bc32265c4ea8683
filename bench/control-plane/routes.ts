/**
 * The control plane on a real API server, with 1,000 and then 5,000 HTTPRoutes. Claims:
 * - a route that is applied answers through the proxy at most 30 ms (p99) after a bare watch client
 *   has seen it, also while other routes are edited;
 * - routes applied at 100 a second all answer at most 3 s after the last write;
 * - at most one status write for each route, and 50 for the Gateway for each 1,000 routes;
 * - with 5,000 routes, after a minute of rest, the controller has at most 400 MB and the proxy 150 MB.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchContext, quantile, type Row } from '../harness.ts'
import { memoryOf } from '../proxy/process.ts'
import { Scene } from './scene.ts'

const perSecond = 100
const churnPerSecond = 20
const restMs = 60_000

interface Reaction {
  /** Milliseconds from the write to the first answer of the route. */
  readonly answer: number
  /** Milliseconds from the write to the bare watch client. */
  readonly watch: number
}

class Measurement {
  readonly #scene: Scene
  readonly #prefix: string
  #fresh = 0

  constructor(scene: Scene, size: number) {
    this.#scene = scene
    this.#prefix = `fresh-${size}`
  }

  /** One new route, alone. */
  async #reaction(): Promise<Reaction> {
    const scene = this.#scene
    const name = `${this.#prefix}-${++this.#fresh}`
    const begun = performance.now()
    const created = scene.create(name)
    const [answered, seen] = await Promise.all([
      scene.answers(name, 1),
      scene.watch.when(name, 1),
      created,
    ])
    return { answer: answered - begun, watch: seen - begun }
  }

  /** New routes one after the other. */
  async reactions(count: number): Promise<Reaction[]> {
    const found: Reaction[] = []
    for (let n = 0; n < count; n++) {
      found.push(await this.#reaction())
      await delay(20)
    }
    return found
  }

  /** Removes the new routes again. */
  async clear(): Promise<void> {
    while (this.#fresh > 0) await this.#scene.remove(`${this.#prefix}-${this.#fresh--}`)
  }

  /** The same while other routes are edited. */
  async underChurn(count: number, names: readonly string[]): Promise<Reaction[]> {
    let isChurning = true
    const churn = (async () => {
      for (let n = 0; isChurning; n++) {
        const edit = this.#scene.edit(names[(n * 7919) % names.length] ?? '', n + 2)
        await Promise.all([edit, delay(1_000 / churnPerSecond)])
      }
    })()
    try {
      return await this.reactions(count)
    } finally {
      isChurning = false
      await churn
    }
  }
}

const beyond = ({ answer, watch }: Reaction) => answer - watch

function reactionRows(id: string, all: readonly Reaction[][]): Row[] {
  const flat = all.flat()
  const perRound = (of: (one: Reaction) => number, share: number) =>
    all.map((round) => quantile(round.map(of), share))
  const note = `of ${flat.length} routes`
  return [
    {
      id: `${id}.p50`,
      unit: 'ms',
      own: perRound(({ answer }) => answer, 0.5),
      peer: { name: 'a bare watch client', samples: perRound(({ watch }) => watch, 0.5) },
      note,
    },
    {
      id: `${id}.p99`,
      unit: 'ms',
      own: [
        quantile(
          flat.map(({ answer }) => answer),
          0.99,
        ),
      ],
      note,
    },
    { id: `${id}.beyond-watch.p50`, unit: 'ms', own: perRound(beyond, 0.5), note },
    {
      id: `${id}.beyond-watch.p99`,
      unit: 'ms',
      own: [quantile(flat.map(beyond), 0.99)],
      bound: { atMost: 30 },
      note,
    },
  ]
}

async function reactionsAt(
  scene: Scene,
  names: readonly string[],
  { rounds, quick, note }: BenchContext,
): Promise<Row[]> {
  const each = quick ? 20 : 60
  const measurement = new Measurement(scene, names.length)
  const alone: Reaction[][] = []
  const churned: Reaction[][] = []
  for (let round = 0; round < rounds; round++) {
    alone.push(await measurement.reactions(each))
    churned.push(await measurement.underChurn(each, names))
    note(`${names.length} routes: round ${round + 1} of ${rounds}`)
  }
  await measurement.clear()
  const id = `control-plane.apply.${names.length}`
  return [...reactionRows(id, alone), ...reactionRows(`${id}.churn`, churned)]
}

/** Creates routes until there are as many as named; what that took until they all answer. */
async function grow(scene: Scene, names: readonly string[], known: number): Promise<Row[]> {
  const added = names.slice(known)
  await scene.statusesSettled()
  const before = {
    routes: await scene.writes('HTTPRoute'),
    gateways: await scene.writes('Gateway'),
  }
  const begun = performance.now()
  const written = await scene.createPaced(added, perSecond)
  const answered = await scene.allAnswer(added)
  await scene.statusesSettled()
  const routes = (await scene.writes('HTTPRoute')) - before.routes
  const gateways = (await scene.writes('Gateway')) - before.gateways
  // The write of the route itself is a version, too.
  const most = Math.max(...added.map((name) => scene.watch.versions(name) - 1))
  const rate = Math.round((1_000 * added.length) / (written - begun))
  const id = (row: string) => `control-plane.${row}.${names.length}`
  return [
    {
      id: id('burst'),
      unit: 'ms',
      own: [Math.max(0, answered - written)],
      bound: { atMost: 3_000 },
      note: `from the last of ${added.length} writes, at ${rate} a second, to the last answer`,
    },
    {
      id: id('status-writes.route'),
      unit: 'writes',
      own: [Math.max(most, routes / added.length)],
      bound: { atMost: 1 },
      note: `most of one route; ${routes} of ${added.length} routes together`,
    },
    {
      id: id('status-writes.gateway'),
      unit: 'writes',
      own: [(1_000 * gateways) / added.length],
      bound: { atMost: 50 },
      note: `for each 1,000 routes; ${gateways} in all`,
    },
  ]
}

async function memory(scene: Scene, size: number, note: (text: string) => void): Promise<Row[]> {
  note(`resting for ${restMs / 1_000} s`)
  await delay(restMs)
  const row = (name: string, pid: number, atMost: number): Row => ({
    id: `control-plane.resident.${name}.${size}`,
    unit: 'MB',
    own: [memoryOf(pid) / 1024 ** 2],
    bound: { atMost },
    note: `after ${restMs / 1_000} s of rest`,
  })
  return [row('controller', scene.controller.pid, 400), row('proxy', scene.proxy.pid, 150)]
}

/** The sizes in SLUICE_BENCH_ROUTES (`1000,5000`); each size includes the one before. */
function sizesOf({ quick }: BenchContext): number[] {
  const given = process.env.SLUICE_BENCH_ROUTES
  if (given !== undefined) return given.split(',').map(Number)
  return quick ? [200] : [1_000, 5_000]
}

export default async function routes(context: BenchContext): Promise<Row[]> {
  const sizes = sizesOf(context)
  const scene = await Scene.start()
  try {
    const rows: Row[] = []
    let known = 0
    for (const size of sizes) {
      const names = Array.from({ length: size }, (_, n) => `route-${n}`)
      context.note(`creating ${size - known} routes at ${perSecond} a second`)
      rows.push(...(await grow(scene, names, known)))
      rows.push(...(await reactionsAt(scene, names, context)))
      known = size
    }
    rows.push(...(await memory(scene, known, context.note)))
    return rows
  } finally {
    await scene.dispose()
  }
}
