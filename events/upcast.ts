import { assertShape } from './assert-shape.ts'
import type { AnyCloudEvent } from './envelope.ts'
import { assertEvent } from './shapes.ts'
import { type SluiceEvent, vocabulary } from './vocabulary.ts'

/** Converts an event of an old version to the next version; envelope attributes are kept. */
export type Upcaster = (event: AnyCloudEvent) => AnyCloudEvent

/**
 * Upcasters by the old event type. Old events are never rewritten in the log. When one is read, it is
 * converted step by step until its type is a current one. No event type has changed yet.
 */
export const upcasters: Readonly<Record<string, Upcaster>> = {}

const currentTypes: ReadonlySet<string> = new Set(vocabulary.map(({ type }) => type))

/** Thrown if the log has an event type that this version does not know: a newer version wrote it. */
export class UnknownEventTypeError extends Error {
  readonly type: string

  constructor(type: string) {
    super(`event type ${type} is unknown; the log was written by a newer version`)
    this.name = 'UnknownEventTypeError'
    this.type = type
  }
}

/** Fields that the fold reads without checking them again. A few, since every event that is read is checked. */
const envelopeShape = { type: 'string', subject: 'string', time: 'string', data: 'object' } as const
const nameShape = { kind: 'string', namespace: 'string', name: 'string' } as const
const dataShapes: Readonly<Record<string, Parameters<typeof assertShape>[1]>> = {
  'dev.sluice.resource.applied.v1': {
    ...nameShape,
    uid: 'string',
    resourceVersion: 'string',
    generation: 'number',
    object: 'object',
  },
  'dev.sluice.resource.deleted.v1': { ...nameShape, uid: 'string' },
  'dev.sluice.resource.refused.v1': { ...nameShape, problems: [() => undefined] },
}
const objectShape = { metadata: 'object' } as const

/**
 * Converts an event from a log to its current version.
 * @throws UnknownEventTypeError if neither the vocabulary nor `table` contains the type.
 * @throws DamagedEventError if a required field is missing.
 */
export function upcast(
  event: AnyCloudEvent,
  table: Readonly<Record<string, Upcaster>> = upcasters,
): SluiceEvent {
  assertShape(event, envelopeShape, 'event')
  let current = event
  while (!currentTypes.has(current.type)) {
    const step = Object.hasOwn(table, current.type) ? table[current.type] : undefined
    if (step === undefined) throw new UnknownEventTypeError(current.type)
    current = step(current)
  }
  const shape = dataShapes[current.type]
  if (shape !== undefined) assertShape(current.data, shape, 'event.data')
  if (current.type === 'dev.sluice.resource.applied.v1') {
    const { object } = current.data as { readonly object: unknown }
    assertShape(object, objectShape, 'event.data.object')
  }
  return current as SluiceEvent
}

/**
 * Converts an event from an export, which anyone may have written: all of its fields are checked, and what every
 * object has. Throws like `upcast`.
 */
export function upcastExported(event: AnyCloudEvent): SluiceEvent {
  const known = upcast(event)
  assertEvent(known)
  return known
}
