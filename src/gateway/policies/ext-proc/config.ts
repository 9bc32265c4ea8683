import {
  choice,
  flag,
  type Infer,
  map,
  optional,
  record,
  text,
} from '../../../ground/base/shape.ts'
import { calloutTarget, milliseconds } from '../../../ground/model/shapes.ts'

const message = record({
  sendsHeaders: flag,
  body: choice('none', 'streamed', 'buffered', 'bufferedPartial', 'fullDuplex'),
  sendsTrailers: flag,
})

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
export const shape = record({
  target: calloutTarget,
  failsOpen: optional(flag),
  /** If omitted, everything is sent. */
  modes: optional(record({ request: message, response: message, allowsOverride: flag })),
  /** Expressions by filter and name. If omitted, the claims of a verified token are sent. */
  metadata: optional(map(map(text))),
  requestAttributes: optional(map(text)),
  responseAttributes: optional(map(text)),
  timeoutMs: optional(milliseconds),
  /** Whether answers are ignored. */
  observes: optional(flag),
})
export type ExtProcConfig = Infer<typeof shape>
