import type { AnyCloudEvent } from './envelope.ts'
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

/** Thrown if an event has a shape that no version writes: the log was damaged or edited. */
export class DamagedEventError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DamagedEventError'
  }
}

/** Names and types of fields; a list, since every event that is read is checked. */
type Shape = readonly (readonly [string, 'string' | 'number' | 'object'])[]

const envelopeShape: Shape = [
  ['type', 'string'],
  ['subject', 'string'],
  ['time', 'string'],
  ['data', 'object'],
]

const nameShape: Shape = [
  ['kind', 'string'],
  ['namespace', 'string'],
  ['name', 'string'],
]

const objectShape: Shape = [
  ['apiVersion', 'string'],
  ['kind', 'string'],
  ['metadata', 'object'],
]

/** Fields that the fold reads without checking them again. */
const dataShapes: Readonly<Record<string, Shape>> = {
  'dev.sluice.resource.applied.v1': [
    ...nameShape,
    ['uid', 'string'],
    ['resourceVersion', 'string'],
    ['generation', 'number'],
    ['object', 'object'],
  ],
  'dev.sluice.resource.deleted.v1': [...nameShape, ['uid', 'string']],
  'dev.sluice.resource.refused.v1': [...nameShape, ['problems', 'object']],
}

/** @throws DamagedEventError */
function assertShape(value: unknown, shape: Shape, at: string): void {
  if (typeof value !== 'object' || value === null) {
    throw new DamagedEventError(`${at} is no object`)
  }
  for (const [field, type] of shape) {
    const found = (value as Readonly<Record<string, unknown>>)[field]
    if (typeof found === type && found !== null) continue
    throw new DamagedEventError(`${at}.${field} is missing or no ${type}`)
  }
}

/** Matches the beginning of a time of RFC 3339, whose years have four digits. */
const timePattern = /^\d{4}-\d\d-\d\dT/

/** @throws DamagedEventError if the fold could not order events by this time */
function assertTime(time: unknown, at: string): void {
  if (typeof time === 'string' && timePattern.test(time) && !Number.isNaN(Date.parse(time))) return
  throw new DamagedEventError(`${at} is no time`)
}

/** Checks the parts of an object that every kind has. @throws DamagedEventError */
function assertObject(object: Readonly<Record<string, unknown>>): void {
  const at = 'event.data.object'
  assertShape(object, objectShape, at)
  const metadata = object.metadata as Readonly<Record<string, unknown>>
  assertShape(metadata, [['name', 'string']], `${at}.metadata`)
  const { creationTimestamp } = metadata
  if (creationTimestamp !== undefined && creationTimestamp !== null) {
    assertTime(creationTimestamp, `${at}.metadata.creationTimestamp`)
  }
}

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
    assertShape(object, [['metadata', 'object']], 'event.data.object')
  }
  return current as SluiceEvent
}

/**
 * Converts an event from an export, which anyone may have written: its time and its object are checked too.
 * Throws like `upcast`.
 */
export function upcastExported(event: AnyCloudEvent): SluiceEvent {
  const known = upcast(event)
  assertTime(known.time, 'event.time')
  if (known.type === 'dev.sluice.resource.applied.v1') assertObject(known.data.object)
  return known
}
