/**
 * Reads the log as it is stored, by rules of its own, and folds it once more. What replicas append, derive
 * and send is compared with it.
 */
import { hash } from 'node:crypto'
import type { SluiceEvent } from '../../events/index.ts'
import { type Digests, Fold } from '../../src/control/actors/fold.ts'
import { createGraph } from '../../src/control/desired/derivations.ts'
import type { Recorded } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { type GatewayState, PublishedState } from '../../src/control/xds/published-state.ts'
import type { ObjectName } from '../../src/ground/model/names.ts'
import type { ResourceKey } from '../../src/ground/model/resources.ts'
import { DivertedProxies } from './diverted-proxies.ts'
import type { StoredMessage } from './nats-server.ts'
import { StoredLog } from './stored-log.ts'

/** Identifies a set of versions. Secrets are left out, since they join a configuration later. */
export function fingerprintOf(versions: Iterable<readonly [ResourceKey, string]>): string {
  const lines = [...versions].filter(([key]) => !key.startsWith('secret/'))
  const text = lines.map(([key, version]) => `${key} ${version}`).sort()
  return hash('sha256', text.join('\n')).slice(0, 12)
}

interface Since {
  readonly position: number
  readonly fingerprint: string
}

export class Reference {
  readonly fold = new Fold(createGraph({ checkRegex: regexProblem }))
  /** Ids of all events, by position from 1. */
  readonly ids: string[] = ['']
  readonly #digests = new Map<number, Digests>()
  readonly #published = new PublishedState((key, _position, error) => {
    throw new Error(`${key} cannot be encoded: ${String(error)}`)
  })
  readonly #gateways = new Map<string, { readonly state: GatewayState; readonly since: Since[] }>()
  readonly #log = new StoredLog()
  readonly #diverted: DivertedProxies

  constructor(gateways: readonly ObjectName[]) {
    this.#diverted = new DivertedProxies(gateways, fingerprintOf)
    this.#published.publish({ sequence: 0, upserted: [], removed: [] })
    for (const gateway of gateways) {
      const state = this.#published.openGateway(gateway)
      const since = [{ position: 0, fingerprint: fingerprintOf([]) }]
      this.#gateways.set(`${gateway.namespace}/${gateway.name}`, { state, since })
    }
  }

  get position(): number {
    return this.#log.position
  }

  /** Takes the next message of the stream. Returns the events that it makes part of the log. */
  take(message: StoredMessage): Recorded[] {
    const recorded = this.#log.take(message)
    for (const { event } of recorded) this.ids.push(event.id)
    return recorded
  }

  /** Folds an event, and publishes what it changes. */
  fold1(recorded: Recorded): void {
    const { fold } = this
    fold.apply(recorded)
    this.#diverted.take(fold, recorded)
    this.#digests.set(recorded.position, fold.digests())
    const { delta } = fold.takeChange()
    if (delta.upserted.length === 0 && delta.removed.length === 0) return
    this.#published.publish(delta)
    for (const { state, since } of this.#gateways.values()) {
      const versions = [...state.keys()].map((key) => [key, state.version(key) ?? ''] as const)
      const fingerprint = fingerprintOf(versions)
      if (since.at(-1)?.fingerprint === fingerprint) continue
      since.push({ position: recorded.position, fingerprint })
    }
  }

  digestsAt(position: number): Digests | undefined {
    return this.#digests.get(position)
  }

  /** Fingerprint of what the proxies of a Gateway should have at a position. */
  fingerprintAt(gateway: string, position: number): string {
    const { since = [] } = this.#gateways.get(gateway) ?? {}
    return since.findLast((one) => one.position <= position)?.fingerprint ?? ''
  }

  /** The same for a proxy, which may have a change before others. */
  fingerprintFor(proxy: string, gateway: string, position: number): string {
    const diverted = this.#diverted.fingerprintAt(proxy, gateway, position)
    return diverted ?? this.fingerprintAt(gateway, position)
  }

  /** Whether a proxy has a change before others now. */
  isDiverted(proxy: string): boolean {
    return this.#diverted.isDiverted(proxy)
  }

  /** Fingerprints of all that the proxies of a Gateway could have since a position. */
  fingerprintsFrom(gateway: string, position: number): Set<string> {
    const { since = [] } = this.#gateways.get(gateway) ?? {}
    const later = since.filter((one) => one.position > position)
    return new Set([this.fingerprintAt(gateway, position), ...later.map((one) => one.fingerprint)])
  }

  /** What the proxies of a Gateway should have now, by key. */
  versionsOf(gateway: string): Map<ResourceKey, string> {
    const state = this.#gateways.get(gateway)?.state
    return new Map([...(state?.keys() ?? [])].map((key) => [key, state?.version(key) ?? '']))
  }
}

export type EventOfType<Type extends SluiceEvent['type']> = Extract<SluiceEvent, { type: Type }>
