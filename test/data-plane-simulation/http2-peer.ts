/**
 * One side of an HTTP/2 connection (RFC 9113) of a world. It is strict about what the gateway sends, and keeps to the
 * windows that the gateway gives. HPACK is decoded by the engine's decoder, which has tests of its own.
 */
import { HpackDecoder } from '../../src/engines/http/http2/hpack-decoder.ts'
import type { Random } from '../virtual-time/random.ts'
import type { World } from '../virtual-time/world.ts'
import { appended } from './bytes.ts'
import type { Field } from './http1-reader.ts'
import {
  acknowledged,
  endHeaders,
  endStream,
  fail,
  frameOf,
  literal,
  types,
  uint32s,
  withoutPadding,
} from './http2-frames.ts'
import type { End } from './network.ts'

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

const initialWindowSetting = 4
const maxFrameSetting = 5
const defaultWindow = 65_535
const frameSize = 16_384

export interface PeerSettings {
  /** Window of each stream, in bytes. */
  readonly window: number
  /** Pause before a window is opened again. */
  readonly windowPauseMs: number
}

export interface PeerOwner {
  readonly world: World
  readonly random: Random
  onHead(stream: number, fields: readonly Field[], isLast: boolean): void
  onData(stream: number, bytes: Buffer, isLast: boolean): void
  onReset(stream: number, code: number): void
  /** Octets of data are on their way to the peer. */
  onSentData?(stream: number, size: number): void
  /** The peer accepts no streams after `last`. */
  onGoAway(last: number, code: number): void
  /** The connection is gone. */
  onClose(): void
  fail(text: string): void
}

/** What waits for a window. */
interface Unsent {
  bytes: Buffer
  readonly isLast: boolean
  readonly onSent: () => void
}

interface StreamState {
  /** Bytes that the gateway may receive. */
  sendWindow: number
  /** Bytes that we may receive. */
  receiveWindow: number
  readonly unsent: Unsent[]
  /** Octets of DATA so far, and those that a content-length promises. */
  received: number
  promised: number | undefined
  hasEnded: boolean
}

export class Http2Peer {
  readonly #isServer: boolean
  readonly #end: End
  readonly #settings: PeerSettings
  readonly #owner: PeerOwner
  readonly #decoder = new HpackDecoder()
  readonly #streams = new Map<number, StreamState>()
  /** Bytes that were received since a window was opened last, by stream. */
  readonly #used = new Map<number, number>()
  #rest = Buffer.alloc(0)
  #needsPreface: boolean
  #block: { readonly stream: number; readonly flags: number; bytes: Buffer } | undefined
  #sendWindow = defaultWindow
  #receiveWindow = defaultWindow
  #initialWindow = defaultWindow
  isOver = false

  constructor(role: 'client' | 'server', end: End, settings: PeerSettings, owner: PeerOwner) {
    this.#isServer = role === 'server'
    this.#needsPreface = this.#isServer
    this.#end = end
    this.#settings = settings
    this.#owner = owner
    end.receiver = {
      onBytes: (bytes) => this.#receive(bytes),
      onEnd: () => this.#close(),
      onReset: () => this.#close(),
    }
    end.read()
    const payload = Buffer.alloc(6)
    payload.writeUInt16BE(initialWindowSetting, 0)
    payload.writeUInt32BE(settings.window, 2)
    if (!this.#isServer) end.write(Buffer.from(preface))
    this.#sendFrame(types.settings, 0, 0, payload)
  }

  /** Sends a head or trailers. Names are in lower case. */
  sendHead(stream: number, fields: readonly Field[], isLast: boolean): void {
    this.#stateOf(stream)
    const block = Buffer.concat(fields.map(literal))
    const cut = this.#owner.random.chance(0.2)
      ? this.#owner.random.below(block.length)
      : block.length
    const flags = isLast ? endStream : 0
    if (cut === block.length) {
      this.#sendFrame(types.headers, flags | endHeaders, stream, block)
      return
    }
    this.#sendFrame(types.headers, flags, stream, block.subarray(0, cut))
    this.#sendFrame(types.continuation, endHeaders, stream, block.subarray(cut))
  }

  /** Sends data as windows allow; `onSent` is called when all of it is on its way. */
  sendData(stream: number, bytes: Buffer, isLast: boolean, onSent: () => void): void {
    this.#stateOf(stream).unsent.push({ bytes, isLast, onSent })
    this.#flush(stream)
  }

  reset(stream: number, code: number): void {
    this.#sendFrame(types.reset, 0, stream, uint32s(code))
    this.#streams.delete(stream)
  }

  /** Ends the stream and resets it with bytes that arrive together, as some clients do. */
  endAndReset(stream: number, code: number): void {
    if (this.isOver) return
    const end = frameOf(types.data, endStream, stream, Buffer.alloc(0))
    this.#end.write(Buffer.concat([end, frameOf(types.reset, 0, stream, uint32s(code))]))
    this.#streams.delete(stream)
  }

  goAway(last: number): void {
    this.#sendFrame(types.goAway, 0, 0, uint32s(last, 0))
  }

  /** Says that no more data of a stream are sent. */
  forget(stream: number): void {
    this.#streams.delete(stream)
  }

  close(kind: 'close' | 'reset'): void {
    if (kind === 'close') this.#end.close()
    else this.#end.reset()
    this.isOver = true
  }

  #stateOf(stream: number): StreamState {
    let state = this.#streams.get(stream)
    if (state === undefined) {
      state = {
        sendWindow: this.#initialWindow,
        // The gateway may send a request before it knows the window of a server.
        receiveWindow: this.#isServer
          ? Math.max(this.#settings.window, defaultWindow)
          : this.#settings.window,
        unsent: [],
        received: 0,
        promised: undefined,
        hasEnded: false,
      }
      this.#streams.set(stream, state)
    }
    return state
  }

  #sendFrame(type: number, flags: number, stream: number, payload: Buffer): void {
    if (this.isOver) return
    this.#end.write(frameOf(type, flags, stream, payload))
  }

  #flush(stream: number): void {
    const state = this.#streams.get(stream)
    if (state === undefined) return
    for (let first = state.unsent[0]; first !== undefined; first = state.unsent[0]) {
      const room = Math.min(this.#sendWindow, state.sendWindow, frameSize)
      if (room <= 0 && first.bytes.length > 0) return
      const size = Math.min(room, first.bytes.length)
      const isWhole = size === first.bytes.length
      const flags = isWhole && first.isLast ? endStream : 0
      this.#sendFrame(types.data, flags, stream, first.bytes.subarray(0, size))
      this.#sendWindow -= size
      state.sendWindow -= size
      this.#owner.onSentData?.(stream, size)
      first.bytes = first.bytes.subarray(size)
      if (!isWhole) continue
      state.unsent.shift()
      first.onSent()
    }
  }

  #receive(bytes: Buffer): void {
    if (this.isOver) return
    this.#rest = appended(this.#rest, bytes)
    try {
      if (this.#needsPreface) {
        if (this.#rest.length < preface.length) return
        if (this.#rest.toString('latin1', 0, preface.length) !== preface) fail('no preface')
        this.#rest = this.#rest.subarray(preface.length)
        this.#needsPreface = false
      }
      while (this.#step());
    } catch (error) {
      this.#owner.fail(`a frame of the gateway is wrong: ${error}`)
    }
  }

  #step(): boolean {
    if (this.#rest.length < 9 || this.isOver) return false
    const length = this.#rest.readUIntBE(0, 3)
    if (length > frameSize) fail(`a frame of ${length} bytes`)
    if (this.#rest.length < 9 + length) return false
    const [type = 0, flags = 0] = [this.#rest[3], this.#rest[4]]
    const stream = this.#rest.readUInt32BE(5)
    const payload = Buffer.from(this.#rest.subarray(9, 9 + length))
    this.#rest = this.#rest.subarray(9 + length)
    if (
      this.#block !== undefined &&
      (type !== types.continuation || stream !== this.#block.stream)
    ) {
      fail('a frame inside of a header block')
    }
    this.#onFrame(type, flags, stream, payload)
    return true
  }

  #onFrame(type: number, flags: number, stream: number, payload: Buffer): void {
    switch (type) {
      case types.data:
        this.#onData(stream, flags, payload)
        return
      case types.headers:
        this.#block = { stream, flags, bytes: withoutPadding(flags, payload) }
        if ((flags & endHeaders) !== 0) this.#onBlock()
        return
      case types.continuation:
        if (this.#block === undefined) fail('a continuation of nothing')
        this.#block.bytes = Buffer.concat([this.#block.bytes, payload])
        if ((flags & endHeaders) !== 0) this.#onBlock()
        return
      case types.reset:
        this.#streams.delete(stream)
        this.#owner.onReset(stream, payload.readUInt32BE(0))
        return
      case types.settings:
        if ((flags & acknowledged) === 0) this.#onSettings(payload)
        return
      case types.ping:
        if ((flags & acknowledged) === 0) this.#sendFrame(types.ping, acknowledged, 0, payload)
        return
      case types.goAway:
        this.#owner.onGoAway(payload.readUInt32BE(0), payload.readUInt32BE(4))
        return
      case types.windowUpdate:
        this.#onWindow(stream, payload.readUInt32BE(0))
        return
      case types.priority:
        return
      default:
        fail(`a frame of type ${type}`)
    }
  }

  #onSettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6) {
      const [name, value] = [payload.readUInt16BE(at), payload.readUInt32BE(at + 2)]
      if (name === initialWindowSetting) {
        for (const state of this.#streams.values()) state.sendWindow += value - this.#initialWindow
        this.#initialWindow = value
      } else if (name === maxFrameSetting && value < frameSize) fail('small frames')
    }
    this.#sendFrame(types.settings, acknowledged, 0, Buffer.alloc(0))
    for (const stream of [...this.#streams.keys()]) this.#flush(stream)
  }

  #onWindow(stream: number, size: number): void {
    if (size === 0) fail('a window update of nothing')
    if (stream === 0) {
      this.#sendWindow += size
      for (const one of [...this.#streams.keys()]) this.#flush(one)
      return
    }
    const state = this.#streams.get(stream)
    if (state === undefined) return
    state.sendWindow += size
    this.#flush(stream)
  }

  #onBlock(): void {
    const block = this.#block
    if (block === undefined) return
    this.#block = undefined
    const fields: Field[] = []
    this.#decoder.decode(block.bytes, 0, block.bytes.length, {
      onField: ({ name, value }) => void fields.push([name, value]),
    })
    for (const [name] of fields) {
      if (name !== name.toLowerCase()) fail(`the name ${name}`)
      if (/^(connection|keep-alive|transfer-encoding|upgrade)$/.test(name))
        fail(`the field ${name}`)
    }
    const isLast = (block.flags & endStream) !== 0
    const state = this.#stateOf(block.stream)
    if (state.hasEnded) fail(`a head on stream ${block.stream}, which has ended`)
    const length = fields.find(([name]) => name === 'content-length')?.[1]
    if (length !== undefined) state.promised = Number(length)
    state.hasEnded = isLast
    this.#owner.onHead(block.stream, fields, isLast)
  }

  #onData(stream: number, flags: number, payload: Buffer): void {
    const state = this.#streams.get(stream)
    this.#receiveWindow -= payload.length
    if (this.#receiveWindow < 0) fail('more data than the window of the connection')
    if (payload.length > 0) this.#openLater(0, payload.length)
    if (state === undefined) return
    if (state.hasEnded) fail(`data on stream ${stream}, which has ended`)
    state.receiveWindow -= payload.length
    if (state.receiveWindow < 0) fail(`more data than the window of stream ${stream}`)
    const bytes = withoutPadding(flags, payload)
    const isLast = (flags & endStream) !== 0
    state.received += bytes.length
    state.hasEnded = isLast
    if (isLast && state.promised !== undefined && state.promised !== state.received) {
      fail(`${state.received} of ${state.promised} bytes on stream ${stream} as a whole body`)
    }
    this.#owner.onData(stream, bytes, isLast)
    if (payload.length > 0 && !isLast) this.#openLater(stream, payload.length)
  }

  /** Opens a window again when half of it is used, perhaps after a pause. */
  #openLater(stream: number, size: number): void {
    const used = (this.#used.get(stream) ?? 0) + size
    const window = stream === 0 ? defaultWindow : this.#settings.window
    if (used * 2 < window) {
      this.#used.set(stream, used)
      return
    }
    this.#used.delete(stream)
    const open = () => {
      const state = this.#streams.get(stream)
      if (this.isOver || (stream !== 0 && state === undefined)) return
      if (state === undefined) this.#receiveWindow += used
      else state.receiveWindow += used
      this.#sendFrame(types.windowUpdate, 0, stream, uint32s(used))
    }
    const { windowPauseMs } = this.#settings
    if (windowPauseMs === 0) open()
    else {
      const { world, random } = this.#owner
      world.schedule(this.#end.machine, random.between(0, windowPauseMs), open)
    }
  }

  #close(): void {
    if (this.isOver) return
    this.isOver = true
    this.#end.close()
    this.#owner.onClose()
  }
}
