import { parseDurationMs } from '../../base/duration.ts'
import type { Compiled } from '../define.ts'
import type { FrontendHttpConfig } from './config.ts'
import type { FrontendHttpSpec } from './schema.ts'

/** Largest window that HTTP/2 knows (RFC 9113 6.9.1); a larger one means the same. */
const largestWindow = 2 ** 31 - 1

/** `frontend.http`; the schema has checked durations and bounds. */
export function compile(spec: FrontendHttpSpec): Compiled<FrontendHttpConfig> {
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
