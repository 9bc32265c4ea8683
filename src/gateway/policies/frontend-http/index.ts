import { parseDurationMs } from '../../../ground/base/duration.ts'
import { byteSize, integer, object, optional } from '../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../ground/schema/rules.ts'
import { duration } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

const fields = {
  maxBufferSize: optional(byteSize({ min: 1 }), {
    doc: 'Maximum size of a body that is read into memory for a policy. Requests with larger bodies get 413 if a policy must have the body. For expressions the body is absent.',
    unit: 'bytes',
    default: 2_097_152,
  }),
  http1MaxHeaders: optional(integer({ min: 1, max: 4096 }), {
    doc: 'Maximum number of header fields in an HTTP/1.1 request. Requests with more get 431. If it is above 100, heads may be larger too: 16 KiB for each hundred, up to 64 KiB. For HTTP/2 only the size is limited; clients get it as SETTINGS_MAX_HEADER_LIST_SIZE.',
    default: 100,
  }),
  http1IdleTimeout: optional(duration, {
    doc: 'An HTTP/1.1 connection that is unused for this long is closed.',
    default: '10m',
  }),
  maxConnectionDuration: optional(
    duration,
    'A connection that is open for this long takes no more requests, and closes after those under way; no limit if not set. HTTP/1.1 clients get `connection: close`, HTTP/2 clients a GOAWAY. It may end up to a tenth earlier, so that clients do not come back all at once. Tunnels, such as WebSockets, stay open.',
  ),
  http2WindowSize: optional(byteSize({ min: 1 }), {
    doc: 'Initial flow-control window of a stream for received data.',
    unit: 'bytes',
  }),
  http2ConnectionWindowSize: optional(byteSize({ min: 1 }), {
    doc: 'Initial flow-control window of a connection for received data.',
    unit: 'bytes',
  }),
  http2FrameSize: optional(byteSize({ min: 16_384, max: 1_677_215 }), {
    doc: 'Maximum size of a received HTTP/2 frame.',
    unit: 'bytes',
    default: 16_384,
  }),
  http2MaxHeaderSize: optional(byteSize({ min: 1_024, max: 65_535 }), {
    doc: 'Maximum size of the header fields of an HTTP/2 request: for each field its name, its value and 32 bytes (RFC 9113 10.5.1). Requests with more get 431. Clients get it as SETTINGS_MAX_HEADER_LIST_SIZE.',
    unit: 'bytes',
    default: 16_384,
  }),
  http2KeepaliveInterval: optional(duration, 'Time between HTTP/2 pings; no pings if not set.'),
  http2KeepaliveTimeout: optional(
    duration,
    'A connection whose ping is not answered for this long is closed.',
  ),
} as const

/** Maximum HTTP/2 window (RFC 9113 6.9.1). Larger configured values are reduced to it. */
const largestWindow = 2 ** 31 - 1

/**
 * Limits of heads, buffered bodies, idle times and connections, and settings for HTTP/2 windows, frames and pings. If
 * the policy cannot be read, the default limits apply.
 */
export const frontendHttp = definePolicy({
  section: 'frontend',
  field: 'http',
  schema: object('FrontendHTTP', fields, { rules: [atLeastOneOf(...Object.keys(fields))] }),
  doc: 'HTTP settings of accepted connections.',
  security: false,
  compile(spec) {
    const http2 = {
      streamWindowBytes: windowOf(spec.http2WindowSize),
      connectionWindowBytes: windowOf(spec.http2ConnectionWindowSize),
      maxFrameBytes: spec.http2FrameSize,
      maxHeadBytes: spec.http2MaxHeaderSize,
      keepaliveIntervalMs: parseDurationMs(spec.http2KeepaliveInterval),
      keepaliveTimeoutMs: parseDurationMs(spec.http2KeepaliveTimeout),
    }
    const isHttp2Set = Object.values(http2).some((value) => value !== undefined)
    const config = {
      maxBufferBytes: spec.maxBufferSize,
      maxHeaders: spec.http1MaxHeaders,
      idleTimeoutMs: parseDurationMs(spec.http1IdleTimeout),
      connectionDurationMs: parseDurationMs(spec.maxConnectionDuration),
      ...(isHttp2Set && { http2 }),
    }
    return { config, problems: [] }
  },
  apply: () => import('./apply.ts'),
})

function windowOf(size: number | undefined): number | undefined {
  return size === undefined ? undefined : Math.min(size, largestWindow)
}
