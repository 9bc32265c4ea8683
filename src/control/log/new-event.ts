import { type CloudEvent, createEvent, type EventDefinition } from '../../../events/index.ts'
import { type Clock, systemClock } from '../../ground/base/clock.ts'
import { type SubjectParts, subjectOf } from './subjects.ts'

/** The part of the control plane that writes an event. */
interface EventWriter {
  readonly source: string
  readonly epoch: number
  readonly foldVersion?: string
  /** If omitted, the system's clock is used. */
  readonly clock?: Clock
}

/** Creates an event with the current time, about a resource or about something else that has a name. */
export function newEvent<Type extends string, Data>(
  definition: EventDefinition<Type, Data>,
  { clock = systemClock, ...writer }: EventWriter,
  about: SubjectParts,
  content: { readonly id: string; readonly data: Data },
): CloudEvent<Type, Data> {
  const time = new Date(clock.now()).toISOString()
  return createEvent(definition, { ...writer, time }, { ...content, subject: subjectOf(about) })
}
