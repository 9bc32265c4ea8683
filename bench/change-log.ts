/** Writes a long log as a running controller does: changes of routes and endpoints, answers of a proxy. */
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configAcked, createEvent, proxyConnected, type SluiceEvent } from '../events/index.ts'
import { foldVersion } from '../src/control/actors/fold.ts'
import { openEmbeddedLog, subjectOf } from '../src/control/log/index.ts'
import { Reconciler } from '../src/control/plane/reconciler.ts'
import { captureState, restoreState } from '../src/control/plane/stored-state.ts'
import { service } from '../test/support/manifests.ts'
import { appliedEvent, foldSurroundings, routeObject, type SceneObject } from './scenes.ts'

/** A log of the control plane, with the loop that appends its decisions. */
async function openRun(path: string) {
  const { log } = openEmbeddedLog(path)
  const { fold, index, from } = await restoreState(log, '/sluice/bench')
  const reconciler = new Reconciler({
    log,
    fold,
    epoch: () => 0,
    append: (events: readonly SluiceEvent[]) => log.append(events),
    observe: (event) => index.apply(event),
    publish: () => undefined,
    capture: () => captureState(fold, index),
    onFault: (error: unknown) => {
      throw error
    },
  })
  await reconciler.start(from)
  reconciler.open()
  const settle = async () => reconciler.folded(await log.lastPosition())
  const close = async () => {
    await reconciler.stop()
    await log.saveSnapshot(await captureState(fold, index))
    await log.close()
  }
  return { log, settle, close, fold }
}

const about = { source: '/sluice/bench', time: '2026-01-02T03:04:05.000Z', epoch: 0 }
const proxySubject = subjectOf({ cluster: 'bench', kind: 'Proxy', name: 'edge-0' })

function acked(sequence: number): SluiceEvent {
  const data = { proxy: 'edge-0', sequence }
  return createEvent(configAcked, about, { id: `ack-${sequence}`, subject: proxySubject, data })
}

/** Numbers that look random, and are the same in each run. */
function generator(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** The next change: of a route, sometimes one that breaks it, or of the endpoints of a Service. */
class Changes {
  readonly #random = generator(7)
  readonly #revisions = new Map<string, number>()
  readonly #routes: number

  constructor(routes: number) {
    this.#routes = routes
  }

  next(): SluiceEvent {
    if (this.#random(5) === 0)
      return this.#applied(service('shop', [9101 + this.#random(8)])[1] ?? {})
    return this.route(this.#random(this.#routes))
  }

  route(n: number): SluiceEvent {
    const key = `route-${n}`
    const object = routeObject(n, this.#revisions.get(key) ?? 0)
    if (this.#random(20) > 0) return this.#applied(object)
    const text = JSON.stringify(object).replaceAll('"name":"shop"', '"name":"gone"')
    return this.#applied(JSON.parse(text) as SceneObject)
  }

  #applied(object: SceneObject): SluiceEvent {
    const { name } = (object as { metadata: { name: string } }).metadata
    const revision = (this.#revisions.get(name) ?? 0) + 1
    this.#revisions.set(name, revision)
    return appliedEvent(object, revision)
  }
}

const batch = 50

async function write(path: string, size: number, routes: number): Promise<void> {
  const run = await openRun(path)
  const changes = new Changes(routes)
  const connected = createEvent(proxyConnected, about, {
    id: 'connected',
    subject: proxySubject,
    data: { proxy: 'edge-0', address: '192.0.2.1' },
  })
  await run.log.append([...foldSurroundings().map((object) => appliedEvent(object)), connected])
  for (let n = 0; n < routes; n += 500) {
    await run.log.append(Array.from({ length: 500 }, (_, index) => changes.route(n + index)))
    await run.settle()
  }
  for (let last = 0; last < size; last = await run.log.lastPosition()) {
    await run.log.append(Array.from({ length: batch }, () => changes.next()))
    await run.settle()
    await run.log.append([acked(run.fold.position)])
    await run.settle()
  }
  await run.close()
}

/** Returns the path of such a log, which is written only once for each version of the fold. */
export async function changeLog(
  size: number,
  routes: number,
  note: (text: string) => void,
): Promise<string> {
  const folder = join(tmpdir(), 'sluice-bench-logs')
  const path = join(folder, `${size}-${routes}-${foldVersion}.db`)
  if (existsSync(path)) return path
  mkdirSync(folder, { recursive: true })
  const fresh = `${path}.${process.pid}`
  const begun = process.cpuUsage()
  await write(fresh, size, routes)
  const { user, system } = process.cpuUsage(begun)
  note(`${path} written with ${Math.round((user + system) / 1e6)} s of CPU`)
  renameSync(fresh, path)
  return path
}
