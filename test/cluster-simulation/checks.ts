/** The invariants that are checked with every message, write and configuration. */
import type { AnyCloudEvent } from '../../events/index.ts'
import { foldVersion } from '../../src/control/actors/fold.ts'
import type { Recorded } from '../../src/control/log/index.ts'
import { type ObjectKey, objectKey } from '../../src/ground/model/names.ts'
import type { Write } from './api-server.ts'
import type { Cluster } from './cluster.ts'
import { KeptVersions } from './kept-versions.ts'
import type { StoredMessage } from './nats-server.ts'
import { PinnedState } from './pinned-state.ts'
import type { SimulatedProxy } from './proxy.ts'
import { Reference } from './reference.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly observedGeneration?: number
}

/** An object as the log should have it, by a rule that is independent of the fold. */
interface Shadow {
  readonly uid: string
  readonly resourceVersion: string
}

interface Parameters {
  readonly changeProtection?: { readonly mode?: string }
  readonly rollout?: object
}

/** Texts in every secret value, plain and in Base64 with each alignment. */
export const secretMark = 'TOP-SECRET-VALUE'
const encodedMarks = ['', 'x', 'xx'].map((prefix) =>
  Buffer.from(prefix + secretMark)
    .toString('base64')
    .slice(prefix.length === 0 ? 0 : 4, -4),
)
const marks = [secretMark, ...encodedMarks]

export class Checks {
  readonly reference: Reference
  readonly #cluster: Cluster
  readonly #shadow = new Map<ObjectKey, Shadow>()
  /** Which run of which replica wrote under an epoch. */
  readonly #holders = new Map<number, string>()
  #epoch = 0
  /** The epoch of the last status write to each object. */
  readonly #writers = new Map<string, number>()
  /** The newest epoch that each replica has acquired. */
  readonly #epochOf = new Map<string, number>()
  readonly #programmed = new Map<ObjectKey, number>()
  /** Called once with the next decision about a pin, a change or a rollout. */
  atDecision: (() => void) | undefined
  readonly #kept: KeptVersions
  readonly #pinned = new PinnedState()
  /** Ids of acknowledged events, whose position the server told later than the append. */
  acknowledgements = 0

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    const gateways = ['a', 'b'].map((name) => ({ namespace: 'apps', name }))
    this.reference = new Reference(gateways)
    const { fold } = this.reference
    const parameters = () =>
      (fold.graph.object('GatewayParameters/apps/safe')?.object?.spec ?? {}) as Parameters
    this.#kept = new KeptVersions(
      () => parameters().changeProtection?.mode ?? 'Off',
      () => parameters().rollout !== undefined,
      () => [...fold.changes.waiting.keys(), ...fold.rollouts.waiting.keys()],
    )
  }

  /** Called when an append has resolved. */
  acknowledged(by: string, events: readonly AnyCloudEvent[], positions: readonly number[]): void {
    this.acknowledgements += events.length
    for (const [index, { id }] of events.entries()) {
      const position = positions[index] ?? 0
      if (this.reference.ids[position] === id) continue
      const stored = this.reference.ids[position]
      this.#fail(
        `${by} was told that ${id} is at position ${position}, where the log has ${stored}`,
      )
    }
  }

  /** Called when a replica has read an event. */
  read(by: string, { position, event }: Recorded, before: number | undefined): void {
    if (before !== undefined && position !== before + 1) {
      this.#fail(`${by} read position ${position} after ${before}`)
    }
    if (this.reference.ids[position] !== event.id) {
      this.#fail(`${by} read ${event.id} at position ${position}, which is another event`)
    }
  }

  /** Called with every message that the stream stores. */
  stored(message: StoredMessage): void {
    const body = Buffer.from(message.data).toString('latin1')
    if (marks.some((mark) => body.includes(mark))) {
      this.#fail(`message ${message.seq} (${message.subject}) has a secret`)
    }
    for (const recorded of this.reference.take(message)) this.#take(recorded)
  }

  #take(recorded: Recorded): void {
    const { position, event } = recorded
    const { world } = this.#cluster
    const subject = event.subject.replace(/^sluice\.[^.]*\./, '')
    world.note(
      `log ${position}: ${event.type.replace('dev.sluice.', '')} of ${subject}, ${event.id}`,
    )
    const isStale = event.epoch < this.#epoch && event.epoch > 0
    if (isStale) world.note(`position ${position} is of an old leader`)
    this.#checkEpoch(recorded)
    this.#checkEffect(recorded)
    if (isStale && this.reference.fold.changedAt === position) {
      this.#fail(`position ${position} takes effect, although its epoch ${event.epoch} is over`)
    }
    switch (event.type) {
      case 'dev.sluice.desired.published.v1': {
        const { version, digest, statusDigest } = event.data
        this.#compare(
          position,
          version,
          digest,
          statusDigest,
          event.data.foldVersion ?? foldVersion,
        )
        break
      }
      case 'dev.sluice.digest.taken.v1': {
        const { desired, status } = event.data
        this.#compare(position, event.data.position, desired, status, event.data.foldVersion)
        break
      }
      case 'dev.sluice.digest.differed.v1':
        this.#fail(`a replica found other digests: ${JSON.stringify(event.data)}`)
        break
      case 'dev.sluice.config.acked.v1':
        this.#checkAnswer(event.data)
        break
      default:
    }
    if (this.reference.fold.changedAt === position) this.#checkProgrammed(position)
  }

  /** Folds an event. What a pin or a protection keeps in force changes only with an event that says so. */
  #checkEffect(recorded: Recorded): void {
    const { fold } = this.reference
    const contentOf = (key: ObjectKey) => JSON.stringify(fold.graph.object(key)?.object)
    this.#checkRollout(recorded)
    const kept = this.#kept.keys(recorded.event).map((key) => [key, contentOf(key)] as const)
    this.reference.fold1(recorded)
    for (const [key, before] of kept) {
      if (contentOf(key) === before) continue
      this.#fail(`position ${recorded.position} puts ${key} in force, which must wait`)
    }
    const isDecision = this.#kept.take(recorded)
    const target = this.#cluster.operators.targets.get(recorded.event.id)
    const problem = this.#pinned.problemWith(fold, recorded, this.#kept.isPinned, target)
    if (problem !== undefined) this.#fail(`position ${recorded.position}: ${problem}`)
    if (!isDecision) return
    const { atDecision } = this
    this.atDecision = undefined
    atDecision?.()
  }

  /** A leader does not finish a rollout whose proxies fail more often than the others. */
  #checkRollout({ position, event }: Recorded): void {
    const { world, traffic } = this.#cluster
    if (event.type === 'dev.sluice.rollout.stepped.v1') traffic.stepped(position, world.wallMs())
    if (event.type !== 'dev.sluice.rollout.ended.v1') return
    const { rollout, outcome, author } = event.data
    const { rollouts } = this.reference.fold
    const running = rollouts.rollouts.get(rollout)
    const isStale = event.epoch > 0 && event.epoch < this.#epoch
    if (running === undefined || author !== undefined || isStale) return
    const gateway = traffic.failingGateway(running, world.wallMs())
    if (outcome !== 'Finished' || gateway === undefined) return
    this.#fail(`position ${position} finishes rollout ${rollout}, whose proxies of ${gateway} fail`)
  }

  #compare(position: number, of: number, desired: string, status: string, version: string): void {
    const own = this.reference.digestsAt(of)
    if (own === undefined || version !== foldVersion) return
    if (own.desired === desired && own.status === status) return
    const text = `desired ${desired} and ${own.desired}, statuses ${status} and ${own.status}`
    this.#fail(`the digests of position ${of}, recorded at ${position}, differ: ${text}`)
  }

  /** One writer for each epoch, no effect of an old one, and versions of objects that only rise. */
  #checkEpoch({ position, event }: Recorded): void {
    if (event.type === 'dev.sluice.lease.acquired.v1') {
      const { holder, epoch } = event.data
      const known = this.#holders.get(epoch)
      if (known !== undefined) this.#fail(`epoch ${epoch} has two holders: ${known} and ${holder}`)
      this.#holders.set(epoch, holder)
      this.#epochOf.set(holder, epoch)
      if (epoch > this.#epoch) this.#epoch = epoch
      return
    }
    if (!event.type.startsWith('dev.sluice.resource.') || event.epoch < this.#epoch) return
    const { kind, namespace, name, uid, resourceVersion } = event.data as never as Shadow & {
      kind: string
      namespace: string
      name: string
    }
    const key = objectKey({ kind, namespace, name })
    const before = this.#shadow.get(key)
    if (event.type === 'dev.sluice.resource.deleted.v1') {
      if (before?.uid === uid) this.#shadow.delete(key)
      return
    }
    const revision = (text: string) => Number(text.split('-')[0])
    if (before?.uid === uid && revision(before.resourceVersion) > revision(resourceVersion)) {
      this.#fail(
        `position ${position}: ${key} goes back from version ${before.resourceVersion} to ${resourceVersion}`,
      )
    }
    this.#shadow.set(key, { uid, resourceVersion })
  }

  /** A proxy acknowledges only what it has had in force. */
  #checkAnswer({
    proxy: name,
    gateway = '',
    sequence,
  }: {
    proxy: string
    gateway?: string
    sequence: number
  }): void {
    const proxy = this.#cluster.proxies.find(({ machine }) => machine.name === name)
    const fingerprint = this.reference.fingerprintFor(name, gateway, sequence)
    // A proxy that has crashed since starts with new fingerprints.
    if (proxy === undefined || proxy.startedAt > this.#cluster.world.now - 60_000) return
    if (proxy.fingerprints.has(fingerprint)) return
    this.#fail(`${name} acknowledged position ${sequence} and never had ${fingerprint} in force`)
  }

  /**
   * Every proxy that is ready has a configuration with the generation, at the time when the generation begins to
   * count as programmed. Its condition may show that only later, once a rejection has ended.
   */
  #checkProgrammed(position: number): void {
    const { fold } = this.reference
    for (const name of ['a', 'b']) {
      const ref = { kind: 'Gateway', namespace: 'apps', name }
      const key = objectKey(ref)
      const state = fold.graph.object(key)
      const latched = fold.graph.inputs.get(`programmed:${key}`) as number | undefined
      const { conditions = [] } = (fold.statusOf(ref) ?? {}) as { conditions?: Condition[] }
      const condition = conditions.find(({ type }) => type === 'Programmed')
      if (condition?.status === 'True' && condition.observedGeneration !== latched) {
        this.#fail(`${key} is called programmed at position ${position}, before any proxy has it`)
      }
      const generation = latched === state?.generation ? latched : undefined
      if (generation === this.#programmed.get(key)) continue
      if (generation === undefined) this.#programmed.delete(key)
      else this.#programmed.set(key, generation)
      if (generation === undefined || state === undefined) continue
      const gateway = `apps/${name}`
      const good = this.reference.fingerprintsFrom(gateway, state.generationSequence)
      for (const { proxy: id, gateway: own, state: is } of fold.proxies()) {
        const proxy = this.#cluster.proxies.find(({ machine }) => machine.name === id)
        if (own !== gateway || is !== 'ready' || proxy === undefined) continue
        if (proxy.startedAt > this.#cluster.world.now - 60_000) continue
        if (this.reference.isDiverted(id) || !proxy.fingerprints.isDisjointFrom(good)) continue
        const what = `${key} generation ${generation} is called programmed at position ${position}`
        this.#fail(`${what}, but ${id} never had it in force`)
      }
    }
  }

  /** Called when a proxy is about to apply a configuration; that on its disk has position 0. */
  applied(proxy: SimulatedProxy, position: number): void {
    if (position >= proxy.position || position === 0) return
    // Replicas publish the same content under different positions.
    const { name } = proxy.machine
    const contentAt = (at: number) =>
      this.reference.fingerprintFor(name, `apps/${proxy.gateway}`, at)
    if (contentAt(position) === contentAt(proxy.position)) return
    this.#fail(`${proxy.machine.name} goes back from position ${proxy.position} to ${position}`)
  }

  /** Called with every write that the API server accepts. */
  written({ collection, by, isStatus, object, before }: Write): void {
    const { world } = this.#cluster
    const { name = '', namespace = '' } = (object ?? before)?.metadata ?? {}
    const what = `${collection} ${namespace}/${name}`
    world.note(`wrote ${isStatus ? 'status of ' : ''}${what} by ${by}`)
    if (!isStatus || object === undefined) return
    const epoch = this.#epochOf.get(by)
    if (epoch === undefined) return
    const id = `${what} ${object.metadata.uid}`
    const last = this.#writers.get(id) ?? 0
    if (epoch < last) this.#fail(`${by} (epoch ${epoch}) writes ${what} after epoch ${last}`)
    this.#writers.set(id, epoch)
  }

  /** The objects of the log by the independent rule, compared with those of the fold. */
  compareShadow(): void {
    const { graph } = this.reference.fold
    for (const [key, { uid, resourceVersion }] of this.#shadow) {
      const state = graph.object(key)
      if (state?.uid === uid && state.resourceVersion === resourceVersion) continue
      this.#fail(`the fold has ${key} as ${state?.resourceVersion}, the log as ${resourceVersion}`)
    }
    for (const { ref } of graph.objects()) {
      if (this.#shadow.has(objectKey(ref))) continue
      this.#fail(`the fold has ${objectKey(ref)}, which the log has deleted`)
    }
  }

  #fail(text: string): void {
    this.#cluster.world.fail(text)
  }
}
