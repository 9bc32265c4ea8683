/**
 * Given / when / then for the fold: objects in as events, statuses and resources out. The story
 * assigns positions, uids and generations as a real source does.
 */
import {
  createEvent,
  resourceApplied,
  resourceDeleted,
  type SluiceEvent,
} from '../../events/index.ts'
import { Fold } from '../../src/control/actors/fold.ts'
import { createGraph } from '../../src/control/desired/derivations.ts'
import type { Status } from '../../src/control/desired/status-store.ts'
import { objectKey } from '../../src/ground/model/names.ts'

export interface StoryObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly creationTimestamp?: string
  }
  readonly spec?: unknown
  readonly [field: string]: unknown
}

const clusterScoped = new Set(['GatewayClass', 'Namespace'])

export class FoldStory {
  readonly fold: Fold
  readonly events: { position: number; event: SluiceEvent }[] = []
  readonly #generations = new Map<string, number>()
  #minute = 0

  constructor(checkRegex: (pattern: string) => string | undefined = () => undefined) {
    this.fold = new Fold(createGraph({ checkRegex }))
  }

  /** Applies objects, one event each. */
  apply(...objects: StoryObject[]): this {
    for (const object of objects) this.#append(this.#applied(object))
    return this
  }

  delete(kind: string, name: string, namespace = 'default'): this {
    const ref = { kind, namespace: clusterScoped.has(kind) ? '' : namespace, name }
    const content = { id: `${this.events.length}`, subject: objectKey(ref) }
    const data = { ...ref, uid: objectKey(ref), resourceVersion: 'gone', cause: 'watch' } as const
    return this.#append(createEvent(resourceDeleted, this.#context(), { ...content, data }))
  }

  /** Any other event. */
  record(make: (context: { source: string; time: string; epoch: number }) => SluiceEvent): this {
    return this.#append(make(this.#context()))
  }

  status(kind: string, name: string, namespace = 'default'): Status | undefined {
    return this.fold.statusOf({
      kind,
      namespace: clusterScoped.has(kind) ? '' : namespace,
      name,
    })
  }

  #applied(object: StoryObject): SluiceEvent {
    const { kind, metadata } = object
    const namespace = clusterScoped.has(kind) ? '' : (metadata.namespace ?? 'default')
    const ref = { kind, namespace, name: metadata.name }
    const key = objectKey(ref)
    const generation = (this.#generations.get(key) ?? 0) + 1
    this.#generations.set(key, generation)
    const data = { ...ref, uid: key, resourceVersion: `${generation}`, generation, object }
    const content = { id: `${this.events.length}`, subject: key, data }
    return createEvent(resourceApplied, this.#context(), content)
  }

  #context() {
    const time = new Date(Date.UTC(2026, 0, 1, 0, this.#minute++)).toISOString()
    return { source: '/test', time, epoch: 0 }
  }

  #append(event: SluiceEvent): this {
    const entry = { position: this.events.length + 1, event }
    this.events.push(entry)
    this.fold.apply(entry)
    return this
  }
}
