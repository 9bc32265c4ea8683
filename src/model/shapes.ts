/** Shapes that the compiled forms of several policies share. */
import { choice, integer, list, port, record, type Shape, text, union } from '../base/shape.ts'
import type { DirectTarget, HeaderChanges } from './resources.ts'

type ServiceTarget = Extract<DirectTarget, { readonly type: 'service' }>
type NamedBackend = Extract<DirectTarget, { readonly type: 'backend' }>
type NoTarget = Extract<DirectTarget, { readonly type: 'invalid' }>

const service: Shape<ServiceTarget> = record({
  type: choice('service'),
  namespace: text,
  name: text,
  port,
})
const backend: Shape<NamedBackend> = record({
  type: choice('backend'),
  namespace: text,
  name: text,
})
const invalid: Shape<NoTarget> = record({ type: choice('invalid'), reason: text, message: text })

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

/** Longer times are longer than timers go. */
export const milliseconds = integer(0, 2 ** 52)

export const keepalive = record<{
  readonly retries: number
  readonly timeMs: number
  readonly intervalMs: number
}>({ retries: integer(0, 2 ** 31 - 1), timeMs: milliseconds, intervalMs: milliseconds })

const header = record<HeaderChanges['set'][number]>({ name: text, value: text })

export const headerChanges: Shape<HeaderChanges> = record({
  set: list(header),
  add: list(header),
  remove: list(text),
})

export const namedExpression = record<{ readonly name: string; readonly expression: string }>({
  name: text,
  expression: text,
})
