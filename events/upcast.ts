import type { AnyCloudEvent } from './envelope.ts'
import { type SluiceEvent, vocabulary } from './vocabulary.ts'

/** Turns an event of an old version into the version after it; envelope attributes are kept. */
export type Upcaster = (event: AnyCloudEvent) => AnyCloudEvent

/**
 * Old type -> how to read it as the next version. Old events are never rewritten: a reader lifts
 * them, step by step, until the type is a current one. Nothing has changed its shape yet.
 */
export const upcasters: Readonly<Record<string, Upcaster>> = {}

const currentTypes: ReadonlySet<string> = new Set(vocabulary.map(({ type }) => type))

/** The log holds a type that this version does not know: it was written by a newer one. */
export class UnknownEventTypeError extends Error {
  readonly type: string

  constructor(type: string) {
    super(`event type ${type} is unknown; the log was written by a newer version`)
    this.name = 'UnknownEventTypeError'
    this.type = type
  }
}

/** What was read is not what any version has written: the log was damaged, or edited. */
export class DamagedEventError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DamagedEventError'
  }
}

type Shape = Readonly<Record<string, 'string' | 'number' | 'object'>>

const envelopeShape: Shape = { type: 'string', subject: 'string', time: 'string', data: 'object' }

const nameShape: Shape = { kind: 'string', namespace: 'string', name: 'string' }

/** What the fold reads of an observed object without looking twice. */
const dataShapes: Readonly<Record<string, Shape>> = {
  'dev.sluice.resource.applied.v1': {
    ...nameShape,
    uid: 'string',
    resourceVersion: 'string',
    generation: 'number',
    object: 'object',
  },
  'dev.sluice.resource.deleted.v1': { ...nameShape, uid: 'string' },
  'dev.sluice.resource.refused.v1': { ...nameShape, problems: 'object' },
}

/** @throws DamagedEventError */
function assertShape(value: unknown, shape: Shape, at: string): void {
  if (typeof value !== 'object' || value === null) {
    throw new DamagedEventError(`${at} is no object`)
  }
  for (const [field, type] of Object.entries(shape)) {
    const found = (value as Readonly<Record<string, unknown>>)[field]
    if (typeof found === type && found !== null) continue
    throw new DamagedEventError(`${at}.${field} is missing or no ${type}`)
  }
}

/**
 * The current form of an event as it was read from a log.
 * @throws UnknownEventTypeError where neither the vocabulary nor the table knows the type.
 * @throws DamagedEventError where something is missing without which there is no such event.
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
  return current as SluiceEvent
}
