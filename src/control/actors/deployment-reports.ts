/**
 * Folds reports about objects that are deployed for Gateways. Fact: `deployment:<object key>` = why the
 * cluster refuses the objects of that Gateway. A failure stands until they are applied, or the Gateway is
 * replaced.
 */
import type { SluiceEvent } from '../../../events/index.ts'
import { type ObjectKey, objectKey } from '../../ground/model/names.ts'
import type { Graph } from '../desired/graph.ts'
import type { ObjectState } from '../desired/object-state.ts'

interface Problem {
  readonly uid: string
  readonly message: string
}

export class DeploymentReports {
  readonly #graph: Graph
  readonly #problems = new Map<ObjectKey, Problem>()

  constructor(graph: Graph) {
    this.#graph = graph
  }

  problem(key: ObjectKey): string | undefined {
    return this.#problems.get(key)?.message
  }

  /** Folds an event about a deployment. Returns false for other events. */
  apply({ type, data }: SluiceEvent): boolean {
    switch (type) {
      case 'dev.sluice.deployment.failed.v1':
        this.#set(gatewayKey(data), { uid: data.uid, message: data.message })
        return true
      case 'dev.sluice.deployment.applied.v1':
        this.#set(gatewayKey(data), undefined)
        return true
      default:
        return false
    }
  }

  noteObject(key: ObjectKey, after: ObjectState | undefined): void {
    const known = this.#problems.get(key)
    if (known !== undefined && known.uid !== after?.uid) this.#set(key, undefined)
  }

  snapshot(): readonly (readonly [ObjectKey, Problem])[] {
    return [...this.#problems]
  }

  restore(persisted: unknown): void {
    for (const [key, problem] of persisted as [ObjectKey, Problem][]) {
      this.#set(key, problem)
    }
  }

  #set(key: ObjectKey, problem: Problem | undefined): void {
    if (problem === undefined) this.#problems.delete(key)
    else this.#problems.set(key, problem)
    this.#graph.setInput(`deployment:${key}`, problem?.message)
  }
}

const gatewayKey = ({ namespace, name }: { namespace: string; name: string }) =>
  objectKey({ kind: 'Gateway', namespace, name })
