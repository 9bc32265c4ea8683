/**
 * A client of servers that speak the protocol of Redis (RESP2): one connection, over which commands are sent without
 * waiting for earlier replies. It never throws: a command that fails has no reply. While there is no connection, commands
 * fail at once, and a new one is tried with growing pauses.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { GrowingBytes } from '../../../../ground/base/growing-bytes.ts'

/** A reply: the bytes of a text; null if there is none; undefined if the command failed. */
type Reply = Buffer | null | undefined

interface Pending {
  readonly resolve: (reply: Reply) => void
  readonly deadline: number
}

/** Limit of a command, and of connecting, in milliseconds. */
const timeoutMs = 500
/** Largest reply in bytes; the connection is closed if one is larger. */
const maxReply = 16 * 1024 * 1024
/** Bytes that may wait to be sent; further commands fail. */
const maxWaiting = 16 * 1024 * 1024
const firstPauseMs = 100
const maxPauseMs = 10_000

const lineEnd = Buffer.from('\r\n')

export class RespClient {
  readonly #server: URL
  #socket: Socket | undefined
  #isReady = false
  #pauseMs = firstPauseMs
  #pending: Pending[] = []
  readonly #received = new GrowingBytes()
  /** Checks the deadline of the oldest command. Runs only while one is pending. */
  #timer: NodeJS.Timeout | undefined

  /** `server` is `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS. */
  constructor(server: URL) {
    this.#server = server
    this.#connect()
  }

  /** Sends a command. */
  send(...parts: readonly (string | Uint8Array)[]): Promise<Reply> {
    if (!this.#isReady) return Promise.resolve(undefined)
    return this.#write(parts)
  }

  #connect(): void {
    const { protocol, hostname, port } = this.#server
    const host = hostname.replace(/^\[|\]$/g, '')
    const target = { host, port: Number(port || 6379) }
    const socket =
      protocol === 'rediss:' ? connectSecurely({ ...target, servername: host }) : connect(target)
    this.#socket = socket
    socket.unref()
    socket.setNoDelay(true)
    socket.setTimeout(timeoutMs, () => socket.destroy())
    socket.on(protocol === 'rediss:' ? 'secureConnect' : 'connect', () => void this.#greet(socket))
    socket.on('data', (bytes) => this.#read(bytes))
    // Only what follows it matters.
    socket.on('error', () => undefined)
    socket.on('close', () => this.#closed())
  }

  async #greet(socket: Socket): Promise<void> {
    socket.setTimeout(0)
    const { username, password, pathname } = this.#server
    const user = decodeURIComponent(username)
    const secret = decodeURIComponent(password)
    const database = pathname.slice(1)
    const isAllowed =
      secret === '' || (await this.#write(['AUTH', ...(user === '' ? [] : [user]), secret]))
    const isChosen = database === '' || (await this.#write(['SELECT', database]))
    if (!isAllowed || !isChosen) socket.destroy()
    else if (this.#socket === socket) {
      this.#isReady = true
      this.#pauseMs = firstPauseMs
    }
  }

  #closed(): void {
    this.#socket = undefined
    this.#isReady = false
    this.#received.clear()
    const failed = this.#pending
    this.#pending = []
    for (const { resolve } of failed) resolve(undefined)
    setTimeout(() => this.#connect(), this.#pauseMs).unref()
    this.#pauseMs = Math.min(maxPauseMs, this.#pauseMs * 2)
  }

  #write(parts: readonly (string | Uint8Array)[]): Promise<Reply> {
    const socket = this.#socket
    if (socket === undefined || socket.writableLength > maxWaiting) {
      return Promise.resolve(undefined)
    }
    const pieces: Uint8Array[] = [Buffer.from(`*${parts.length}\r\n`)]
    for (const part of parts) {
      const bytes = typeof part === 'string' ? Buffer.from(part) : part
      pieces.push(Buffer.from(`$${bytes.length}\r\n`), bytes, lineEnd)
    }
    socket.write(Buffer.concat(pieces))
    return new Promise((resolve) => {
      this.#pending.push({ resolve, deadline: performance.now() + timeoutMs })
      this.#timer ??= this.#watch(timeoutMs)
    })
  }

  #watch(delay: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#timer = undefined
      const [oldest] = this.#pending
      if (oldest === undefined) return
      const left = oldest.deadline - performance.now()
      // Replies come in order, so that a late one delays all others.
      if (left <= 0) this.#socket?.destroy()
      else this.#timer = this.#watch(left + 1)
    }, delay).unref()
  }

  #read(bytes: Buffer): void {
    const received = this.#received
    received.add(bytes, 0, bytes.length)
    const { content } = received
    let at = 0
    for (;;) {
      const found = readReply(content, at)
      if (found === 'broken') {
        this.#socket?.destroy()
        return
      }
      if (found === undefined) break
      at = found.end
      this.#pending.shift()?.resolve(found.reply)
    }
    if (at === 0) return
    const rest = Buffer.from(content.subarray(at))
    received.clear()
    received.add(rest, 0, rest.length)
  }
}

/** Returns the reply that begins at an offset; undefined if not all of it has arrived. */
function readReply(
  bytes: Buffer,
  at: number,
): { readonly reply: Reply; readonly end: number } | 'broken' | undefined {
  const lineStop = bytes.indexOf(lineEnd, at)
  if (lineStop < 0) return bytes.length - at > 64 * 1024 ? 'broken' : undefined
  const line = bytes.toString('latin1', at + 1, lineStop)
  const end = lineStop + 2
  switch (bytes[at]) {
    case 0x2b: // +
    case 0x3a: // :
      return { reply: Buffer.from(line), end }
    case 0x2d: // -
      return { reply: undefined, end }
    case 0x24: {
      // $
      const length = Number(line)
      if (length === -1) return { reply: null, end }
      if (!/^\d+$/.test(line) || length > maxReply) return 'broken'
      if (bytes.length < end + length + 2) return undefined
      // The bytes are overwritten after the call.
      return { reply: Buffer.from(bytes.subarray(end, end + length)), end: end + length + 2 }
    }
    default:
      return 'broken'
  }
}
