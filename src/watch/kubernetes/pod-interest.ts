/** Which Pods count: those that an InferencePool of their namespace selects. */
import { type LabelSelector, matchesSelector } from '../../base/label-selector.ts'

interface PoolSelection {
  readonly namespace: string
  readonly selector: LabelSelector
  readonly text: string
}

export class PodInterest {
  readonly #byPool = new Map<string, PoolSelection>()

  /** Takes what a pool selects now, or that it is gone. True where that changes which Pods count. */
  set(key: string, namespace: string, selector: LabelSelector | undefined): boolean {
    const before = this.#byPool.get(key)
    const text = selector === undefined ? undefined : JSON.stringify(selector)
    if (before?.text === text) return false
    if (selector === undefined || text === undefined) this.#byPool.delete(key)
    else this.#byPool.set(key, { namespace, selector, text })
    return true
  }

  selects(namespace: string, labels: Readonly<Record<string, string>>): boolean {
    for (const pool of this.#byPool.values()) {
      if (pool.namespace === namespace && matchesSelector(pool.selector, labels)) return true
    }
    return false
  }
}
