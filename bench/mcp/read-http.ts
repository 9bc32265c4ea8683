/** Whole messages of HTTP/1.1 off a socket: bodies by length, or chunked up to the last chunk. */
import type { Socket } from 'node:net'

const end = Buffer.from('\r\n\r\n')
const lastChunk = Buffer.from('0\r\n\r\n')

/**
 * `body` of a chunked message has the sizes of its chunks in it. Bodies are not decoded, because that takes longer than
 * a gateway takes for a long one.
 */
export function readHttp(socket: Socket, done: (head: string, body: Buffer) => void): void {
  let pending: Buffer = Buffer.alloc(0)
  let head: string | undefined
  let from = 0
  let length = 0
  let isChunked = false
  /** Pieces of a long body, which are joined at its end. */
  let more: Buffer[] = []
  let missing = 0
  socket.on('data', (piece: Buffer) => {
    if (missing > piece.length) {
      more.push(piece)
      missing -= piece.length
      return
    }
    pending = pending.length === 0 ? piece : Buffer.concat([pending, ...more, piece])
    more = []
    missing = 0
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
      if (pending.length < from + length) {
        missing = from + length - pending.length
        return
      }
      const body = pending.subarray(from, from + length)
      const whole = head
      pending = pending.subarray(from + length)
      head = undefined
      done(whole, body)
      if (pending.length === 0) return
    }
  })
}
