/** Everything that a log and a fold know about an object. */
import type { SluiceEvent } from '../../../events/index.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../ground/model/names.ts'
import type { Fold, RecordedEvent } from '../replay/index.ts'
import { eventDetail, shortType } from './event-text.ts'

/** Returns true if an event is about the object, or about a proxy that rejected one of its resources. */
export function isAbout(ref: ObjectRef, { type, data }: SluiceEvent): boolean {
  if (type === 'dev.sluice.config.rejected.v1') {
    const key = objectKey(ref)
    if (data.key === `stream/${key}`) return true
    return ['listener', 'route'].some((kind) => data.key.startsWith(`${kind}/${key}/`))
  }
  const { kind, namespace, name } = data as Partial<ObjectRef>
  return kind === ref.kind && namespace === ref.namespace && name === ref.name
}

/** The object that a derivation has read, itself (`object:KEY`) or as derived (`value:STAGE:KEY`). */
export const objectRead = (read: string): ObjectKey | undefined =>
  /^(?:object|value:[^:]*):(.*)$/s.exec(read)?.[1]

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

export function explanationOf(object: ObjectRef, fold: Fold, events: readonly RecordedEvent[]) {
  const state = fold.graph.object(objectKey(object))
  const derivations = fold.graph.derivationsOf(object)
  const keys = new Set(derivations.flatMap(({ resources }) => resources))
  const ownListeners = `listener/${objectKey(object)}/`
  return {
    object,
    generation: state?.object === undefined ? undefined : state.generation,
    refused: state?.refused,
    status: fold.statusOf(object),
    events: events
      .filter(({ event }) => isAbout(object, event))
      .map(({ position, event }) => {
        return {
          position,
          time: event.time,
          type: shortType(event.type),
          detail: eventDetail(event),
        }
      }),
    reads: derivations.flatMap(({ stage, reads }) =>
      reads.map((key) => ({ stage, key: readable(key), state: readState(key, fold) })),
    ),
    // Listeners of a ListenerSet are derived with their Gateway, so they are found by their key prefix.
    resources: fold
      .resources()
      .filter(({ resource: { key } }) => keys.has(key) || key.startsWith(ownListeners)),
  }
}
