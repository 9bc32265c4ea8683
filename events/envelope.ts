/**
 * The envelope of every event in the log: CloudEvents 1.0 in JSON format, with two extensions.
 *
 * ```
 *   specversion, id, source, type, subject, time      who saw or decided what, about which resource
 *   datacontenttype, dataschema                       how to read `data`
 *   epoch                                             extension: the lease epoch of the writer
 *   foldversion                                       extension: only on what a fold has decided
 *   data                                              the fact, a readonly record
 * ```
 *
 * The position of an event is given by the log and stands beside the envelope, never inside it.
 */
export interface CloudEvent<Type extends string, Data> {
  readonly specversion: '1.0'
  /** Unique within the log: appending an event whose id is known changes nothing. */
  readonly id: string
  /** Who wrote it, a URI reference such as `/sluice/local/replica-0/files`. */
  readonly source: string
  /** Reverse DNS name with the version at its end, `dev.sluice.resource.applied.v1`. */
  readonly type: Type
  /** The log subject, one for each resource. */
  readonly subject: string
  /** RFC 3339 in UTC with milliseconds; the only clock that the fold knows. */
  readonly time: string
  readonly datacontenttype: 'application/json'
  /** Where the shape of `data` is described: the type's section of the events page. */
  readonly dataschema: string
  /** Lease epoch of the writer; 0 where no lease is held (standalone). */
  readonly epoch: number
  /** Version of the fold that decided this; absent on observations. */
  readonly foldversion?: string
  readonly data: Data
}

/** An event of which nothing but the envelope is known. */
export type AnyCloudEvent = CloudEvent<string, unknown>

/** One entry of the vocabulary: what the type means, and what each field of its data holds. */
export interface EventDefinition<Type extends string, Data> {
  /** Past tense, as the documentation calls it. */
  readonly name: string
  readonly type: Type
  /** Equals the number at the end of `type`. */
  readonly version: number
  /** What has happened when this event stands in the log. */
  readonly about: string
  /** One line of documentation for each field of the data. */
  readonly fields: { readonly [Field in keyof Data]-?: string }
  /** Never present: carries the type of the data. */
  readonly data?: Data
}

/** The event type that a definition describes. */
export type EventOf<Definition> =
  Definition extends EventDefinition<infer Type, infer Data> ? CloudEvent<Type, Data> : never

/** Declares an event; curried so that the type of the data is given and the rest is inferred. */
export function defineEvent<Data>() {
  return <const Type extends string>(
    definition: EventDefinition<Type, Data>,
  ): EventDefinition<Type, Data> => definition
}

/** What the envelopes of one writer have in common. */
export interface EventContext {
  readonly source: string
  /** RFC 3339; read from an injected clock by whoever appends. */
  readonly time: string
  readonly epoch: number
  readonly foldVersion?: string
}

/** Puts data into an envelope. Pure: time and id are arguments. */
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
 * The id of an event about one version of one object. The epoch is part of it so that the append of
 * a holder who has lost the lease can never make the log swallow the new holder's.
 */
export function messageId(
  epoch: number,
  uid: string,
  resourceVersion: string,
  type: string,
): string {
  return `${epoch}:${uid}:${resourceVersion}:${type}`
}
