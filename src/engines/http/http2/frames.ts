/** Constants of HTTP/2 frames (RFC 9113 6, 7), and functions that write frames as Latin-1 text. */
import type { FloodKind } from '../limits/http2-floods.ts'

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const frameFlags = {
  endStream: 0x1,
  ack: 0x1,
  endHeaders: 0x4,
  padded: 0x8,
  priority: 0x20,
} as const

/** The error codes of RFC 9113 7 that the gateway uses. */
export const errorCodes = {
  noError: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  connect: 10,
  enhanceYourCalm: 11,
} as const

/** Identifiers of settings (RFC 9113 6.5.2, RFC 8441 3). */
export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
  enableConnectProtocol: 8,
} as const

/** The bytes that a client sends before its first frame (RFC 9113 3.4). */
export const clientPreface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

export const frameHeadSize = 9
/** Initial size of the windows of both directions (RFC 9113 6.9.2). */
export const startWindow = 65_535
export const windowLimit = 2 ** 31 - 1
/** Initial maximum frame size: every peer accepts it, and none needs larger frames (RFC 9113 4.2). */
export const startFrameSize = 16_384
export const frameSizeLimit = 2 ** 24 - 1

/** An error that ends the whole connection with a GOAWAY that has this code (RFC 9113 5.4.1). */
export class ConnectionError extends Error {
  readonly code: number
  /** The limit that the peer has exceeded, if the error is a flood. */
  readonly flood: FloodKind | undefined

  constructor(code: number, message: string, flood?: FloodKind) {
    super(message)
    this.code = code
    this.flood = flood
  }
}

export function protocolError(text: string): ConnectionError {
  return new ConnectionError(errorCodes.protocol, text)
}

export function floodError(kind: FloodKind): ConnectionError {
  return new ConnectionError(errorCodes.enhanceYourCalm, `too many: ${kind}`, kind)
}

export function frameHead(length: number, type: number, flags: number, stream: number): string {
  return String.fromCharCode(
    (length >>> 16) & 0xff,
    (length >>> 8) & 0xff,
    length & 0xff,
    type,
    flags,
    (stream >>> 24) & 0x7f,
    (stream >>> 16) & 0xff,
    (stream >>> 8) & 0xff,
    stream & 0xff,
  )
}

/** Encodes a number in four bytes, most significant first. */
function word(value: number): string {
  return String.fromCharCode(
    (value >>> 24) & 0xff,
    (value >>> 16) & 0xff,
    (value >>> 8) & 0xff,
    value & 0xff,
  )
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): string {
  let out = frameHead(settings.length * 6, frameTypes.settings, 0, 0)
  for (const [id, value] of settings) out += String.fromCharCode(id >> 8, id & 0xff) + word(value)
  return out
}

export const settingsAck: string = frameHead(0, frameTypes.settings, frameFlags.ack, 0)

/** `payload` is eight bytes as Latin-1 text. */
export function pingFrame(payload: string, isAck: boolean): string {
  return frameHead(8, frameTypes.ping, isAck ? frameFlags.ack : 0, 0) + payload
}

export function windowUpdateFrame(stream: number, increment: number): string {
  return frameHead(4, frameTypes.windowUpdate, 0, stream) + word(increment)
}

export function rstStreamFrame(stream: number, code: number): string {
  return frameHead(4, frameTypes.rstStream, 0, stream) + word(code)
}

export function goawayFrame(lastStream: number, code: number, reason: string): string {
  return (
    frameHead(8 + reason.length, frameTypes.goaway, 0, 0) + word(lastStream) + word(code) + reason
  )
}

/** Writes a header block in a HEADERS frame and as many CONTINUATION frames as it needs. */
export function headerFrames(
  stream: number,
  block: string,
  isLast: boolean,
  maxFrameSize: number,
): string {
  const flags = isLast ? frameFlags.endStream : 0
  if (block.length <= maxFrameSize) {
    return (
      frameHead(block.length, frameTypes.headers, flags | frameFlags.endHeaders, stream) + block
    )
  }
  let out =
    frameHead(maxFrameSize, frameTypes.headers, flags, stream) + block.slice(0, maxFrameSize)
  for (let at = maxFrameSize; at < block.length; at += maxFrameSize) {
    const piece = block.slice(at, at + maxFrameSize)
    const end = at + maxFrameSize >= block.length ? frameFlags.endHeaders : 0
    out += frameHead(piece.length, frameTypes.continuation, end, stream) + piece
  }
  return out
}
