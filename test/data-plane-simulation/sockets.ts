/**
 * Puts the handles of a world under Node's sockets: `net.connect` and `net.createServer` connect ends of a virtual
 * network, and everything above the handle stays Node's own. Import it before the code under test.
 */
import { EventEmitter } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { getSystemErrorMap } from 'node:util'
import type { Machine, World } from '../virtual-time/world.ts'
import type { End, Network } from './network.ts'

/** The state of the last read or write, which handles share with the sockets above them. */
interface StreamBinding {
  readonly kReadBytesOrError: number
  readonly kArrayBufferOffset: number
  readonly kBytesWritten: number
  readonly kLastWriteWasAsync: number
  readonly streamBaseState: Int32Array
}

interface ConnectRequest {
  oncomplete(
    status: number,
    handle: object,
    request: object,
    readable: boolean,
    writable: boolean,
  ): void
}

interface CompletingRequest {
  getAsyncId?: () => number
  oncomplete?: ((this: object, status: number) => void) | null
}

// Handles are no public interface of Node; what the engine uses of them has no other stand-in.
const binding = (process as unknown as { binding(name: string): unknown }).binding
const stream = binding.call(process, 'stream_wrap') as StreamBinding
const { TCP } = binding.call(process, 'tcp_wrap') as { TCP: { prototype: object } }
const state = stream.streamBaseState

const errnoOf = (code: string): number => {
  for (const [errno, [name]] of getSystemErrorMap()) if (name === code) return errno
  throw new Error(`there is no ${code}`)
}
const endOfFile = errnoOf('EOF')
const connectionReset = errnoOf('ECONNRESET')
const connectionRefused = errnoOf('ECONNREFUSED')
const brokenPipe = errnoOf('EPIPE')
const invalid = errnoOf('EINVAL')

let network: Network | undefined
let machine: Machine | undefined

/** Makes this network that of the process, which runs on `on`. */
export function plugIn(next: Network, on: Machine): void {
  network = next
  machine = on
}

function here(): { readonly network: Network; readonly world: World; readonly machine: Machine } {
  if (network === undefined || machine === undefined) throw new Error('there is no network')
  return { network, world: network.world, machine }
}

let nextId = 1

/** A TCP handle whose other side is an end of the virtual network. */
class VirtualHandle {
  // Node's sockets set and read these as they do those of its own handles.
  onread: ((this: VirtualHandle, bytes?: ArrayBuffer) => unknown) | undefined = undefined
  reading = false
  readonly isStreamBase = true
  readonly fd = -1
  bytesRead = 0
  bytesWritten = 0
  readonly writeQueueSize = 0
  readonly #id = nextId++
  #end: End | undefined
  #buffer: Uint8Array | undefined
  #isReading = false
  #isReset = false
  #isShutting = false
  #isClosed = false

  constructor(end?: End) {
    if (end !== undefined) this.#attach(end)
  }

  #attach(end: End): void {
    this.#end = end
    end.receiver = {
      onBytes: (bytes) => this.#emit(bytes),
      onEnd: () => this.#emitStatus(endOfFile),
      onReset: () => {
        this.#isReset = true
        this.#emitStatus(connectionReset)
      },
    }
    if (this.#isReading) end.read()
  }

  #emit(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length && !this.#isClosed) {
      const into = this.#buffer
      const size = Math.min(bytes.length - at, into?.length ?? bytes.length)
      const piece = bytes.subarray(at, at + size)
      at += size
      this.bytesRead += size
      state[stream.kReadBytesOrError] = size
      state[stream.kArrayBufferOffset] = 0
      if (into === undefined) this.onread?.(Uint8Array.from(piece).buffer)
      else {
        into.set(piece)
        this.onread?.()
      }
    }
  }

  #emitStatus(status: number): void {
    if (this.#isClosed) return
    state[stream.kReadBytesOrError] = status
    state[stream.kArrayBufferOffset] = 0
    this.onread?.()
  }

  getAsyncId(): number {
    return this.#id
  }

  getProviderType(): number {
    return 0
  }

  connect(request: ConnectRequest, host: string, port: number): number {
    const { network, machine } = here()
    network.connect(machine, { host, port }, (end) => {
      if (this.#isClosed) {
        end?.reset()
        return
      }
      if (end === undefined) request.oncomplete(connectionRefused, this, request, false, false)
      else {
        this.#attach(end)
        request.oncomplete(0, this, request, true, true)
      }
    })
    return 0
  }

  connect6(request: ConnectRequest, host: string, port: number): number {
    return this.connect(request, host, port)
  }

  readStart(): number {
    this.#isReading = true
    const { world, machine } = here()
    // A handle never calls its socket during the call that starts to read.
    world.schedule(machine, 0, () => {
      if (this.#isReading && !this.#isClosed) this.#end?.read()
    })
    return 0
  }

  readStop(): number {
    this.#isReading = false
    this.#end?.pause()
    return 0
  }

  useUserBuffer(buffer: Uint8Array): void {
    this.#buffer = buffer
  }

  writeBuffer(request: CompletingRequest, bytes: Uint8Array): number {
    return this.#write(request, bytes)
  }

  writeLatin1String(request: CompletingRequest, text: string): number {
    return this.#write(request, Buffer.from(text, 'latin1'))
  }

  writeUtf8String(request: CompletingRequest, text: string): number {
    return this.#write(request, Buffer.from(text, 'utf8'))
  }

  writeAsciiString(request: CompletingRequest, text: string): number {
    return this.#write(request, Buffer.from(text, 'latin1'))
  }

  writev(request: CompletingRequest, chunks: readonly unknown[], areAllBuffers: boolean): number {
    const parts: Uint8Array[] = []
    if (areAllBuffers) parts.push(...(chunks as Uint8Array[]))
    else {
      for (let at = 0; at < chunks.length; at += 2) {
        const [part, encoding] = [chunks[at], chunks[at + 1]]
        parts.push(
          typeof part === 'string'
            ? Buffer.from(part, encoding as BufferEncoding)
            : (part as Uint8Array),
        )
      }
    }
    return this.#writeAll(request, parts)
  }

  #write(request: CompletingRequest, bytes: Uint8Array): number {
    return this.#writeAll(request, [bytes])
  }

  #writeAll(request: CompletingRequest, parts: readonly Uint8Array[]): number {
    const end = this.#end
    const size = parts.reduce((sum, part) => sum + part.length, 0)
    state[stream.kBytesWritten] = size
    state[stream.kLastWriteWasAsync] = 0
    if (this.#isReset || end === undefined || end.isClosed) return brokenPipe
    this.bytesWritten += size
    let waiting = 0
    let hasFailed = false
    const { world, machine } = here()
    const done = (isSent: boolean) => {
      hasFailed ||= !isSent
      if (--waiting > 0) return
      world.schedule(machine, 0, () => {
        delete request.getAsyncId
        request.oncomplete?.call(request, hasFailed ? connectionReset : 0)
      })
    }
    for (const part of parts) if (!end.write(part, done)) waiting++
    if (waiting > 0) {
      state[stream.kLastWriteWasAsync] = 1
      request.getAsyncId = () => 1
    }
    return 0
  }

  shutdown(request: CompletingRequest): number {
    const { world, machine } = here()
    this.#end?.end()
    this.#isShutting = true
    world.schedule(machine, 0, () => {
      this.#isShutting = false
      request.oncomplete?.call(request, 0)
    })
    return 0
  }

  close(onClose?: () => void): void {
    this.#finish(onClose, () => this.#end?.close())
  }

  /** libuv refuses to reset a handle that is being shut down; Node then never closes it. */
  reset(onClose?: () => void): number {
    if (this.#isShutting) {
      this.#isClosed = true
      return invalid
    }
    this.#finish(onClose, () => this.#end?.reset())
    return 0
  }

  #finish(onClose: (() => void) | undefined, finish: () => void): void {
    if (this.#isClosed) return
    this.#isClosed = true
    finish()
    const { world, machine } = here()
    if (onClose !== undefined) world.schedule(machine, 0, () => onClose.call(this))
  }

  getpeername(out: Record<string, unknown>): number {
    return this.#describe(out, this.#end?.remote)
  }

  getsockname(out: Record<string, unknown>): number {
    return this.#describe(out, this.#end?.local)
  }

  #describe(
    out: Record<string, unknown>,
    address: { readonly host: string; readonly port: number } | undefined,
  ): number {
    if (address === undefined) return -1
    Object.assign(out, { address: address.host, port: address.port, family: 'IPv4' })
    return 0
  }

  setNoDelay(): number {
    return 0
  }

  setKeepAlive(): number {
    return 0
  }

  setTypeOfService(): number {
    return 0
  }

  hasRef(): boolean {
    return false
  }

  ref(): void {}

  unref(): void {}
}
// `resetAndDestroy` asks whether the handle is one of TCP.
Object.setPrototypeOf(VirtualHandle.prototype, TCP.prototype)

interface ServerOptions {
  readonly allowHalfOpen?: boolean
  readonly highWaterMark?: number
}

interface ListenOptions {
  readonly port: number
  readonly reusePort?: boolean
}

class VirtualServer extends EventEmitter {
  readonly #options: ServerOptions
  #close: (() => void) | undefined
  #port = 0

  constructor(options: ServerOptions, onConnection: (socket: net.Socket) => void) {
    super()
    this.#options = options
    this.on('connection', onConnection)
  }

  listen({ port, reusePort }: ListenOptions, onListening: () => void): this {
    const { network, world, machine } = here()
    const address = { host: '10.0.0.1', port }
    world.schedule(machine, 0, () => {
      if (reusePort !== true && network.isTaken(address)) {
        this.emit('error', Object.assign(new Error('listen'), { code: 'EADDRINUSE' }))
        return
      }
      this.#port = port
      this.#close = network.listen(address, machine, (end) => {
        const options = { ...this.#options, handle: new VirtualHandle(end) }
        this.emit('connection', new net.Socket(options as object))
      })
      onListening()
    })
    return this
  }

  address() {
    return { port: this.#port, address: '10.0.0.1', family: 'IPv4' }
  }

  close(): this {
    this.#close?.()
    this.#close = undefined
    return this
  }
}

function connect(options: net.TcpNetConnectOpts): net.Socket {
  const socket = new net.Socket({
    ...options,
    handle: new VirtualHandle(),
    manualStart: true,
  } as object)
  return socket.connect(options)
}

Object.assign(net, {
  connect,
  createConnection: connect,
  createServer: (options: ServerOptions, onConnection: (socket: net.Socket) => void) =>
    new VirtualServer(options, onConnection),
})
syncBuiltinESMExports()
