/**
 * The envelope of every event in the log: CloudEvents 1.0 in JSON format, with two extensions.
 *
 * ```
 *   specversion, id, source, type, subject, time      who saw or decided what, about which resource
 *   datacontenttype, dataschema                       how to read `data`
 *   epoch                                             extension: the lease epoch of the writer
 *   foldversion                                       extension: only on decisions of a fold
 *   data                                              what happened, a readonly record
 * ```
 *
 * The log assigns the position of an event; it is not part of the envelope.
 */
export interface CloudEvent<Type extends string, Data> {
  readonly specversion: '1.0'
  /** Unique within the log. Appending an event with an id that is already in the log has no effect. */
  readonly id: string
  /** Who wrote the event: a URI reference such as `/sluice/local/replica-0/files`. */
  readonly source: string
  /** Reverse DNS name that ends in the version, such as `dev.sluice.resource.applied.v1`. */
  readonly type: Type
  /** The log subject; each resource has its own. */
  readonly subject: string
  /** RFC 3339 in UTC with milliseconds. The fold uses no other clock. */
  readonly time: string
  readonly datacontenttype: 'application/json'
  /** URI of the documentation of `data`: the section about this type on the events page. */
  readonly dataschema: string
  /** Lease epoch of the writer; 0 without a lease (standalone). */
  readonly epoch: number
  /** Version of the fold that made this decision; omitted for observations. */
  readonly foldversion?: string
  readonly data: Data
}

/** An event of which only the envelope is read; its data is unknown. */
export type AnyCloudEvent = CloudEvent<string, unknown>

/** One entry of the vocabulary: documents an event type and each field of its data. */
export interface EventDefinition<Type extends string, Data> {
  /** Name in the documentation, in the past tense. */
  readonly name: string
  readonly type: Type
  /** Version number, the same as at the end of `type`. */
  readonly version: number
  /** Describes what happened when this event is written. */
  readonly about: string
  /** One line of documentation for each field of the data. */
  readonly fields: { readonly [Field in keyof Data]-?: string }
  /** Never set; it only carries the type of the data. */
  readonly data?: Data
}

/** The event type that a definition describes. */
export type EventOf<Definition> =
  Definition extends EventDefinition<infer Type, infer Data> ? CloudEvent<Type, Data> : never

/** Declares an event type. Curried, so that callers give the type of the data and the rest is inferred. */
export function defineEvent<Data>() {
  return <const Type extends string>(
    definition: EventDefinition<Type, Data>,
  ): EventDefinition<Type, Data> => definition
}

/** Envelope attributes that all events of one writer share. */
export interface EventContext {
  readonly source: string
  /** RFC 3339 time, which the writer of the event reads from an injected clock. */
  readonly time: string
  readonly epoch: number
  readonly foldVersion?: string
}

/** Puts data into an envelope. It is a pure function: time and id are arguments. */
export function createEvent<Type extends string, Data>(
  definition: EventDefinition<Type, Data>,
  context: EventContext,
  content: { readonly id: string; readonly subject: string; readonly data: Data },
): CloudEvent<Type, Data> {
  return {
    specversion: '1.0',
    id: content.id,
    source: context.source,
    type: definition.type,
    subject: content.subject,
    time: context.time,
    datacontenttype: 'application/json',
    dataschema: `https://sluice.dev/docs/events#${definition.name.toLowerCase()}`,
    epoch: context.epoch,
    ...(context.foldVersion === undefined ? {} : { foldversion: context.foldVersion }),
    data: content.data,
  }
}

/**
 * The id of an event about one version of one object. It contains the epoch, so that the event of a
 * stale lease holder never has the same id as an event of the new holder.
 */
export function messageId(
  epoch: number,
  uid: string,
  resourceVersion: string,
  type: string,
): string {
  return `${epoch}:${uid}:${resourceVersion}:${type}`
}
