/** Everything that a log and a fold know about an object. */
import type { SluiceEvent } from '../../../events/index.ts'
import { type ObjectRef, objectKey } from '../../ground/model/names.ts'
import type { Fold, RecordedEvent } from '../replay/index.ts'
import { eventDetail, shortType, subjectText } from './event-text.ts'
import { objectRead, readText } from './read-text.ts'

/** Returns true if an event is about the object, a pin, a judgement or a rollout of it, or a proxy that rejected one of its resources. */
export function isAbout(ref: ObjectRef, { type, data }: SluiceEvent): boolean {
  if (type === 'dev.sluice.config.rejected.v1') {
    const key = objectKey(ref)
    if (data.key === `stream/${key}`) return true
    return ['listener', 'route'].some((kind) => data.key.startsWith(`${kind}/${key}/`))
  }
  if (
    type === 'dev.sluice.pin.set.v1' ||
    type === 'dev.sluice.change.held.v1' ||
    type === 'dev.sluice.rollout.started.v1' ||
    type === 'dev.sluice.rollout.skipped.v1'
  ) {
    return data.objects.some((one) => isSame(one, ref))
  }
  if (type === 'dev.sluice.change.passed.v1') {
    return data.changes.some((objects) => objects.some((one) => isSame(one, ref)))
  }
  return isSame(data as Partial<ObjectRef>, ref)
}

const isSame = ({ kind, namespace, name }: Partial<ObjectRef>, ref: ObjectRef): boolean =>
  kind === ref.kind && namespace === ref.namespace && name === ref.name

/** Describes the object that a derivation has read; empty if it has read something else. */
function readState(key: string, fold: Fold): string {
  const object = objectRead(key)
  if (object === undefined) return ''
  const state = fold.graph.object(object)
  if (state === undefined) return 'does not exist'
  return state.object === undefined ? 'has no valid version' : `generation ${state.generation}`
}

/** Makes a key readable: `index:grants\0shared` becomes `index:grants shared`. */
const readable = (key: string): string => key.replace('\0', ' ')

/** An event in an explanation. */
interface ExplainedEvent {
  readonly position: number
  readonly time: string
  readonly type: string
  readonly detail: string
  /** Another object whose event changed the conditions, such as `ReferenceGrant shop/carts`. */
  readonly about?: string
}

/**
 * @param events events of the log, of which those about the object are listed
 * @param causes events that changed the conditions of the object; those of other objects are listed too
 */
export function explanationOf(
  object: ObjectRef,
  fold: Fold,
  events: readonly RecordedEvent[],
  causes: readonly RecordedEvent[] = [],
) {
  const state = fold.graph.object(objectKey(object))
  const derivations = fold.graph.derivationsOf(object)
  const keys = new Set(derivations.flatMap(({ resources }) => resources))
  const ownListeners = `listener/${objectKey(object)}/`
  return {
    object,
    generation: state?.object === undefined ? undefined : state.generation,
    refused: state?.refused,
    status: fold.statusOf(object),
    events: explainedEvents(object, events, causes),
    reads: derivations.flatMap(({ stage, reads }) =>
      reads.map((read) => {
        const key = readable(read)
        return { stage, key, text: readText(key), state: readState(read, fold) }
      }),
    ),
    // Listeners of a ListenerSet are derived with their Gateway, so they are found by their key prefix.
    resources: fold
      .resources()
      .filter(({ resource: { key } }) => keys.has(key) || key.startsWith(ownListeners)),
  }
}

/** The events about an object and the causes of its conditions, in their order in the log. */
function explainedEvents(
  object: ObjectRef,
  events: readonly RecordedEvent[],
  causes: readonly RecordedEvent[],
): ExplainedEvent[] {
  const own = events.filter(({ event }) => isAbout(object, event))
  const known = new Set(own.map(({ position }) => position))
  const foreign = causes.filter(({ position }) => !known.has(position))
  return [
    ...own.map((recorded) => explainedEvent(recorded)),
    ...foreign.map((recorded) => {
      const about = subjectText(recorded.event)
      return { ...explainedEvent(recorded), ...(about !== undefined && { about }) }
    }),
  ].sort((a, b) => a.position - b.position)
}

const explainedEvent = ({ position, event }: RecordedEvent): ExplainedEvent => ({
  position,
  time: event.time,
  type: shortType(event.type),
  detail: eventDetail(event),
})
