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

/**
 * The current form of an event as it was read from a log.
 * @throws UnknownEventTypeError where neither the vocabulary nor the table knows the type.
 */
export function upcast(
  event: AnyCloudEvent,
  table: Readonly<Record<string, Upcaster>> = upcasters,
): SluiceEvent {
  let current = event
  while (!currentTypes.has(current.type)) {
    const step = Object.hasOwn(table, current.type) ? table[current.type] : undefined
    if (step === undefined) throw new UnknownEventTypeError(current.type)
    current = step(current)
  }
  return current as SluiceEvent
}
