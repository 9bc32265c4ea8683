import {
  ConnectionError,
  errorCodes,
  floodError,
  frameFlags,
  frameHeadSize,
  frameTypes,
  protocolError,
  startFrameSize,
} from './frames.ts'

/** Handles received frames, whose stream numbers are valid for their types. */
export interface FrameHandler {
  /** Called at the start of a DATA frame. `flowLength`, padding included, counts against the windows. */
  onDataFrame(stream: number, flowLength: number): void
  /** Called for data, which is valid during the call. `isLast`: nothing follows on the stream. */
  onData(stream: number, bytes: Buffer, start: number, end: number, isLast: boolean): void
  /** Called at the end of a DATA frame, of which `padding` octets were no data. */
  onDataEnd(stream: number, padding: number, isLast: boolean, length: number): void
  /** Called for a whole header block. `dependency` is the stream that it depends on, or -1. */
  onHeaders(
    stream: number,
    bytes: Buffer,
    start: number,
    end: number,
    isLast: boolean,
    dependency: number,
  ): void
  onPriority(stream: number, dependency: number): void
  /** Called for a frame that is malformed in a way that ends only its stream (RFC 9113 5.4.2). */
  onBadFrame(stream: number, code: number): void
  onReset(stream: number, code: number): void
  onSetting(id: number, value: number): void
  /** Called when all values of a SETTINGS frame have been reported. */
  onSettingsEnd(): void
  onSettingsAck(): void
  onPing(payload: string, isAck: boolean): void
  onGoaway(lastStream: number, code: number): void
  onWindowUpdate(stream: number, increment: number): void
  onUnknown(type: number): void
}

interface FrameLimits {
  /** Maximum size of a frame, as announced by our SETTINGS_MAX_FRAME_SIZE. */
  readonly maxFrameSize: number
  /** Maximum number of octets of an encoded header block. */
  readonly maxBlockSize: number
  /** Maximum number of CONTINUATION frames of a header block. */
  readonly maxContinuations: number
}

const sizeError = (text: string): ConnectionError => new ConnectionError(errorCodes.frameSize, text)

function readWord(bytes: Buffer, at: number): number {
  return (
    (((bytes[at] ?? 0) << 24) |
      ((bytes[at + 1] ?? 0) << 16) |
      ((bytes[at + 2] ?? 0) << 8) |
      (bytes[at + 3] ?? 0)) >>>
    0
  )
}

/** Splits bytes into frames and checks each frame by itself (RFC 9113 4, 6). Throws ConnectionError. */
export class FrameReader {
  readonly #handler: FrameHandler
  readonly #limits: FrameLimits
  /** Octets of data (`#dataLeft`) and padding (`#padLeft`) that the current DATA frame still has. */
  #dataLeft = 0
  #padLeft = 0
  #dataStream = 0
  #dataLength = 0
  #dataPadding = 0
  #isDataLast = false
  /** The stream whose header block is incomplete; 0 if there is none. */
  #blockStream = 0
  #block: Buffer[] = []
  #blockSize = 0
  #isBlockLast = false
  #blockDependency = -1

  constructor(handler: FrameHandler, limits: FrameLimits) {
    this.#handler = handler
    this.#limits = limits
  }

  /** Whether a header block has begun and is not complete. */
  get isInBlock(): boolean {
    return this.#blockStream !== 0
  }

  /** Reads one frame, or part of a DATA frame. Returns the offset after it: `start` if bytes are missing. */
  read(bytes: Buffer, start: number, end: number): number {
    if (this.#dataLeft + this.#padLeft > 0) return this.#readData(bytes, start, end)
    if (end - start < frameHeadSize) return start
    const length = (readWord(bytes, start) >>> 8) & 0xffffff
    const type = bytes[start + 3] ?? 0
    const flags = bytes[start + 4] ?? 0
    const stream = readWord(bytes, start + 5) & 0x7fffffff
    if (length > this.#limits.maxFrameSize) throw sizeError('frame too large')
    if (this.#blockStream !== 0 && type !== frameTypes.continuation) {
      throw protocolError('a header block is interrupted')
    }
    const body = start + frameHeadSize
    if (type === frameTypes.data) return this.#startData(bytes, body, end, length, flags, stream)
    if (end - body < length) return start
    this.#frame(bytes, body, body + length, type, flags, stream)
    return body + length
  }

  /** `at` is the offset after the frame's head. Waits for the length of the padding if there is one. */
  #startData(
    bytes: Buffer,
    at: number,
    end: number,
    length: number,
    flags: number,
    stream: number,
  ): number {
    if (stream === 0) throw protocolError('DATA on stream 0')
    const isPadded = (flags & frameFlags.padded) !== 0
    if (isPadded && length === 0) throw sizeError('DATA without its padding')
    if (isPadded && at === end) return at - frameHeadSize
    const padding = isPadded ? (bytes[at] ?? 0) : 0
    if (isPadded && padding >= length) throw protocolError('more padding than frame')
    this.#dataStream = stream
    this.#dataPadding = isPadded ? padding + 1 : 0
    this.#padLeft = padding
    this.#dataLength = length - this.#dataPadding
    this.#dataLeft = this.#dataLength
    this.#isDataLast = (flags & frameFlags.endStream) !== 0
    this.#handler.onDataFrame(stream, length)
    return this.#readData(bytes, isPadded ? at + 1 : at, end)
  }

  #readData(bytes: Buffer, start: number, end: number): number {
    let at = start
    if (this.#dataLeft > 0) {
      const next = Math.min(end, at + this.#dataLeft, at + startFrameSize)
      this.#dataLeft -= next - at
      const isLast = this.#isDataLast && this.#dataLeft + this.#padLeft === 0
      if (next > at) this.#handler.onData(this.#dataStream, bytes, at, next, isLast)
      at = next
    }
    if (this.#dataLeft === 0) {
      const skipped = Math.min(end - at, this.#padLeft)
      this.#padLeft -= skipped
      at += skipped
      if (this.#padLeft === 0) {
        const length = this.#dataLength
        this.#handler.onDataEnd(this.#dataStream, this.#dataPadding, this.#isDataLast, length)
      }
    }
    return at
  }

  #frame(
    bytes: Buffer,
    start: number,
    end: number,
    type: number,
    flags: number,
    stream: number,
  ): void {
    const length = end - start
    switch (type) {
      case frameTypes.headers:
        this.#headers(bytes, start, end, flags, stream)
        return
      case frameTypes.continuation:
        this.#continuation(bytes, start, end, flags, stream)
        return
      case frameTypes.windowUpdate:
        if (length !== 4) throw sizeError('WINDOW_UPDATE has 4 octets')
        this.#handler.onWindowUpdate(stream, readWord(bytes, start) & 0x7fffffff)
        return
      case frameTypes.settings:
        this.#settings(bytes, start, end, flags, stream)
        return
      case frameTypes.rstStream:
        if (stream === 0) throw protocolError('RST_STREAM on stream 0')
        if (length !== 4) throw sizeError('RST_STREAM has 4 octets')
        this.#handler.onReset(stream, readWord(bytes, start))
        return
      case frameTypes.ping:
        if (stream !== 0) throw protocolError('PING on a stream')
        if (length !== 8) throw sizeError('PING has 8 octets')
        this.#handler.onPing(bytes.toString('latin1', start, end), (flags & frameFlags.ack) !== 0)
        return
      default:
        this.#rareFrame(bytes, start, length, type, stream)
    }
  }

  #rareFrame(bytes: Buffer, start: number, length: number, type: number, stream: number): void {
    if (type === frameTypes.priority) {
      if (stream === 0) throw protocolError('PRIORITY on stream 0')
      if (length !== 5) this.#handler.onBadFrame(stream, errorCodes.frameSize)
      else this.#handler.onPriority(stream, readWord(bytes, start) & 0x7fffffff)
    } else if (type === frameTypes.goaway) {
      if (stream !== 0) throw protocolError('GOAWAY on a stream')
      if (length < 8) throw sizeError('GOAWAY has 8 octets and more')
      this.#handler.onGoaway(readWord(bytes, start) & 0x7fffffff, readWord(bytes, start + 4))
    } else if (type === frameTypes.pushPromise) {
      // Push is never allowed, neither from clients nor from upstreams (RFC 9113 8.4).
      throw protocolError('PUSH_PROMISE')
    } else this.#handler.onUnknown(type)
  }

  #headers(bytes: Buffer, from: number, to: number, flags: number, stream: number): void {
    if (stream === 0) throw protocolError('HEADERS on stream 0')
    let start = from
    let end = to
    if ((flags & frameFlags.padded) !== 0) {
      if (start === end) throw sizeError('HEADERS without its padding')
      end -= bytes[start] ?? 0
      start++
    }
    let dependency = -1
    if ((flags & frameFlags.priority) !== 0) {
      dependency = readWord(bytes, start) & 0x7fffffff
      start += 5
    }
    if (start > end) {
      if (start > to) throw sizeError('HEADERS without its priority')
      throw protocolError('more padding than frame')
    }
    const isLast = (flags & frameFlags.endStream) !== 0
    if ((flags & frameFlags.endHeaders) !== 0) {
      this.#handler.onHeaders(stream, bytes, start, end, isLast, dependency)
      return
    }
    this.#blockStream = stream
    this.#isBlockLast = isLast
    this.#blockDependency = dependency
    this.#blockSize = 0
    this.#addToBlock(bytes, start, end)
  }

  #continuation(bytes: Buffer, start: number, end: number, flags: number, stream: number): void {
    if (this.#blockStream === 0 || stream !== this.#blockStream) {
      throw protocolError('CONTINUATION of nothing')
    }
    this.#addToBlock(bytes, start, end)
    if ((flags & frameFlags.endHeaders) === 0) return
    const block = Buffer.concat(this.#block)
    this.#block = []
    this.#blockStream = 0
    const dependency = this.#blockDependency
    this.#handler.onHeaders(stream, block, 0, block.length, this.#isBlockLast, dependency)
  }

  #addToBlock(bytes: Buffer, start: number, end: number): void {
    const { maxBlockSize, maxContinuations } = this.#limits
    this.#blockSize += end - start
    if (this.#blockSize > maxBlockSize || this.#block.length > maxContinuations) {
      throw floodError('continuation')
    }
    this.#block.push(Buffer.from(bytes.subarray(start, end)))
  }

  #settings(bytes: Buffer, start: number, end: number, flags: number, stream: number): void {
    if (stream !== 0) throw protocolError('SETTINGS on a stream')
    if ((flags & frameFlags.ack) !== 0) {
      if (end > start) throw sizeError('SETTINGS ack with a payload')
      this.#handler.onSettingsAck()
      return
    }
    if ((end - start) % 6 !== 0) throw sizeError('SETTINGS of broken size')
    for (let at = start; at < end; at += 6) {
      const id = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
      this.#handler.onSetting(id, readWord(bytes, at + 2))
    }
    this.#handler.onSettingsEnd()
  }
}
