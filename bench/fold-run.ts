/**
 * One measurement of `fold.ts`, in a process of its own so that its memory is known: folds N routes
 * one event at a time, then edits some of them. Started with the number of routes; sends its figures
 * to the parent.
 */
import { Fold } from '../src/control/actors/fold.ts'
import { createGraph } from '../src/control/desired/derivations.ts'
import { median } from './harness.ts'
import { appliedEvent, foldSurroundings, routeObject, type SceneObject } from './scenes.ts'

export interface FoldFigures {
  /** Microseconds an event: the actor and the book of statuses, without deriving. */
  readonly fold: number
  /** Microseconds an event: what depends on the object is derived again. */
  readonly derive: number
  /** Microseconds of one more change with all routes there, publishing included; median. */
  readonly change: number
  /** Kilobytes a route, in resident memory and in the heap after a collection. */
  readonly resident: number
  readonly heap: number
}

const edits = 300

function collected() {
  globalThis.gc?.()
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  return { rss, heapUsed }
}

/** User and system time of this process so far, in microseconds; other processes do not disturb it. */
function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** A fold that keeps account of the time that its graph takes to settle. */
class TimedFold {
  readonly #fold: Fold
  #position = 0
  deriving = 0
  whole = 0

  constructor() {
    const graph = createGraph({ checkRegex: () => undefined })
    const settle = graph.settle.bind(graph)
    graph.settle = () => {
      const begun = cpuTime()
      settle()
      this.deriving += cpuTime() - begun
    }
    this.#fold = new Fold(graph)
  }

  /** Microseconds that one event takes. */
  apply(object: SceneObject, revision: number): number {
    // Through JSON, as from a log: nothing is shared between objects.
    const event = JSON.parse(JSON.stringify(appliedEvent(object, revision)))
    this.#position++
    const begun = cpuTime()
    this.#fold.apply({ position: this.#position, event })
    const spent = cpuTime() - begun
    this.whole += spent
    return spent
  }

  publish(): number {
    const begun = cpuTime()
    this.#fold.takeChange()
    return cpuTime() - begun
  }

  resetClock(): void {
    this.whole = 0
    this.deriving = 0
  }
}

function measure(routes: number): FoldFigures {
  // The code becomes hot on a fold of its own, so that sizes differ in size only.
  const warm = new TimedFold()
  for (const object of foldSurroundings()) warm.apply(object, 1)
  for (let n = 0; n < 1_000; n++) warm.apply(routeObject(n), 1)
  const before = collected()
  const fold = new TimedFold()
  for (const object of foldSurroundings()) fold.apply(object, 1)
  fold.resetClock()
  for (let n = 0; n < routes; n++) fold.apply(routeObject(n), 1)
  const { whole, deriving } = fold
  fold.publish()
  const after = collected()
  const changes = Array.from({ length: edits }, (_, index) => {
    const n = (index * 7919) % routes
    return fold.apply(routeObject(n, index + 1), index + 2) + fold.publish()
  })
  return {
    fold: (whole - deriving) / routes,
    derive: deriving / routes,
    change: median(changes),
    resident: (after.rss - before.rss) / 1024 / routes,
    heap: (after.heapUsed - before.heapUsed) / 1024 / routes,
  }
}

process.send?.(measure(Number(process.argv[2])), () => process.disconnect())
