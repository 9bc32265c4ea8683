import { parseDurationMs } from '../../base/duration.ts'
import { byteSize, type Infer, integer, object, optional } from '../../schema/field.ts'
import { atLeastOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { duration } from '../../schema/strings.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { FrontendHttpConfig } from './apply.ts'

const fields = {
  maxBufferSize: optional(byteSize({ min: 1 }), {
    doc: 'Largest body that is held in memory for a policy that needs all of it; a larger one is answered 413.',
    unit: 'bytes',
    default: 2_097_152,
  }),
  http1MaxHeaders: optional(integer({ min: 1, max: 4096 }), {
    doc: 'Most header fields of a request of HTTP/1.1; one with more is answered 431. Where it is above 100, heads may be larger too: 16 KiB for each hundred, up to 64 KiB. Of HTTP/2 the size alone counts, which is told to clients as SETTINGS_MAX_HEADER_LIST_SIZE.',
    default: 100,
  }),
  http1IdleTimeout: optional(duration, {
    doc: 'An HTTP/1.1 connection that is unused for this long is closed.',
    default: '10m',
  }),
  http2WindowSize: optional(byteSize({ min: 1 }), {
    doc: 'First flow-control window of a stream for received data.',
    unit: 'bytes',
  }),
  http2ConnectionWindowSize: optional(byteSize({ min: 1 }), {
    doc: 'First flow-control window of a connection for received data.',
    unit: 'bytes',
  }),
  http2FrameSize: optional(byteSize({ min: 16_384, max: 1_677_215 }), {
    doc: 'Largest HTTP/2 frame that is received.',
    unit: 'bytes',
    default: 16_384,
  }),
  http2KeepaliveInterval: optional(duration, 'Time between HTTP/2 pings; no pings where unset.'),
  http2KeepaliveTimeout: optional(
    duration,
    'A connection whose ping is not answered for this long is closed.',
  ),
} as const

const frontendHttpSchema = object('FrontendHTTP', fields, {
  rules: [atLeastOneOf(...Object.keys(fields))],
})
type FrontendHttpSpec = Infer<typeof frontendHttpSchema>

const frontendHttpField = sectionField({
  section: 'frontend',
  field: 'http',
  schema: frontendHttpSchema,
  doc: 'HTTP settings of accepted connections.',
})

/** Largest window that HTTP/2 knows (RFC 9113 6.9.1); a larger one means the same. */
const largestWindow = 2 ** 31 - 1

/** `frontend.http`; the schema has checked durations and bounds. */
function compile(spec: FrontendHttpSpec): Compiled<FrontendHttpConfig> {
  const http2 = present({
    streamWindowBytes: windowOf(spec.http2WindowSize),
    connectionWindowBytes: windowOf(spec.http2ConnectionWindowSize),
    maxFrameBytes: spec.http2FrameSize,
    keepaliveIntervalMs: milliseconds(spec.http2KeepaliveInterval),
    keepaliveTimeoutMs: milliseconds(spec.http2KeepaliveTimeout),
  })
  const config = present({
    maxBufferBytes: spec.maxBufferSize,
    maxHeaders: spec.http1MaxHeaders,
    idleTimeoutMs: milliseconds(spec.http1IdleTimeout),
    http2: Object.keys(http2).length === 0 ? undefined : http2,
  })
  return { config, problems: [] }
}

function windowOf(size: number | undefined): number | undefined {
  return size === undefined ? undefined : Math.min(size, largestWindow)
}

function milliseconds(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDurationMs(text)
}

type Present<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> }

function present<Fields extends object>(fields: Fields): Present<Fields> {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(set) as Present<Fields>
}

/**
 * Limits of heads, buffered bodies and silence; windows, frames and pings of HTTP/2. Where they cannot
 * be read, the defaults bound the same things.
 */
export const frontendHttp = definePolicy(frontendHttpField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
