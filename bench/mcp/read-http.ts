/** Whole messages of HTTP/1.1 off a socket: bodies by length, or chunked up to the last chunk. */
import type { Socket } from 'node:net'

const end = Buffer.from('\r\n\r\n')
const lastChunk = Buffer.from('0\r\n\r\n')

/** `body` of a chunked message has the sizes of its chunks in it. */
export function readHttp(socket: Socket, done: (head: string, body: string) => void): void {
  let pending: Buffer = Buffer.alloc(0)
  let head: string | undefined
  let from = 0
  let length = 0
  let isChunked = false
  socket.on('data', (piece: Buffer) => {
    pending = pending.length === 0 ? piece : Buffer.concat([pending, piece])
    for (;;) {
      if (head === undefined) {
        const at = pending.indexOf(end)
        if (at < 0) return
        head = pending.toString('latin1', 0, at)
        from = at + 4
        isChunked = /\ntransfer-encoding: *chunked/i.test(head)
        length = isChunked ? 0 : Number(/\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
      }
      if (isChunked) {
        // Nothing follows an answer before the next request, so the last chunk is at the end.
        if (!pending.subarray(-5).equals(lastChunk)) return
        length = pending.length - from
      }
      if (pending.length < from + length) return
      const body = pending.toString('latin1', from, from + length)
      const whole = head
      pending = pending.subarray(from + length)
      head = undefined
      done(whole, body)
      if (pending.length === 0) return
    }
  })
}
