/** Schemas that the compiled configs of several policies share. */
import { parseDurationMs } from '../base/duration.ts'
import {
  choice,
  integer,
  list,
  optional,
  port,
  record,
  type Shape,
  text,
  union,
} from '../base/shape.ts'
import type { ServiceTarget } from './destinations.ts'
import type { DirectTarget, HeaderChanges, HeaderValue, SecretRef } from './resources.ts'

type NamedBackend = Extract<DirectTarget, { readonly type: 'backend' }>
type NoTarget = Extract<DirectTarget, { readonly type: 'invalid' }>

const service = record<ServiceTarget>({
  type: choice('service'),
  namespace: text,
  name: text,
  port,
})
const backend = record<NamedBackend>({
  type: choice('backend'),
  namespace: text,
  name: text,
})
const invalid = record<NoTarget>({ type: choice('invalid'), reason: text, message: text })

type Callable = ServiceTarget | NamedBackend

export const calloutTarget: Shape<Callable> = union<'type', Callable>('type', {
  service,
  backend,
})

export const directTarget: Shape<DirectTarget> = union<'type', DirectTarget>('type', {
  service,
  backend,
  invalid,
})

/** A duration in milliseconds. Timers clamp durations that are longer than they support. */
export const milliseconds = integer(0, 2 ** 52)

export const keepalive = record({
  /** Number of unanswered probes after which the connection is closed. */
  retries: integer(0, 2 ** 31 - 1),
  /** Idle time before the first probe. */
  timeMs: milliseconds,
  intervalMs: milliseconds,
})

const defaultProbes = 9
const defaultProbeMs = 180_000

/** Compiles keepalive settings; the schema has already checked the durations. */
export function keepaliveConfig(spec: { retries?: number; time?: string; interval?: string }) {
  return {
    retries: spec.retries ?? defaultProbes,
    timeMs: parseDurationMs(spec.time) ?? defaultProbeMs,
    intervalMs: parseDurationMs(spec.interval) ?? defaultProbeMs,
  }
}

const secretRef = record<SecretRef>({ namespace: text, name: text, key: text, digest: text })
const header = record<HeaderValue>({ name: text, value: text, secret: optional(secretRef) })

export const headerChanges: Shape<HeaderChanges> = record<HeaderChanges>({
  set: list(header),
  add: list(header),
  remove: list(text),
})

export const namedExpression = record({ name: text, expression: text })

/** Changes to the attributes of access log entries and spans, in the form that users write. */
export const attributeChanges = record({
  remove: optional(list(text)),
  add: optional(list(namedExpression)),
})
