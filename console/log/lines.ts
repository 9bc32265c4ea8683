/** Splits a stream of bytes into lines, in time linear in its length and with bounded memory. */
import { maxLineBytes } from '../../src/control/log/export-lines.ts'

/** Maximum size of a log without compression. */
const maxBytes = 4 * 1024 ** 3
const lineFeed = 0x0a

/** Yields the lines of each chunk, without line feeds. A line shares the memory of its chunk. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array[]> {
  let total = 0
  /** The beginning of a line that ends in a later chunk. */
  let pieces: Uint8Array[] = []
  let pending = 0
  for await (const chunk of chunks) {
    total += chunk.length
    if (total > maxBytes) throw new RangeError('The log is larger than 4 GiB without compression.')
    const lines: Uint8Array[] = []
    let start = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      const rest = chunk.subarray(start, end)
      lines.push(pieces.length === 0 ? rest : joined([...pieces, rest]))
      pieces = []
      pending = 0
      start = end + 1
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start))
    pending += chunk.length - start
    if (pending > maxLineBytes) throw new RangeError('A line is longer than any event of a log.')
    yield lines
  }
  if (pieces.length > 0) yield [joined(pieces)]
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

async function within<Value>(promise: Promise<Value>, ms: number | undefined): Promise<Value> {
  if (ms === undefined) return promise
  const { promise: silence, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new SilenceError()), ms)
  try {
    return await Promise.race([promise, silence])
  } finally {
    clearTimeout(timer)
  }
}

const gzipMark = [0x1f, 0x8b]

/** The bytes of a file; those of a gzip file are decompressed. `onRead` gets the number of bytes read. */
export async function* bytesOf(
  file: Blob,
  onRead: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  const isGzip = gzipMark.every((byte, at) => head[at] === byte)
  let read = 0
  const counter = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      read += chunk.length
      onRead(read)
      controller.enqueue(chunk)
    },
  })
  const counted = file.stream().pipeThrough(counter)
  const stream = isGzip ? counted.pipeThrough(new DecompressionStream('gzip')) : counted
  yield* chunksOf(stream)
}

/** Nothing arrived for too long. */
export class SilenceError extends Error {}

/**
 * Iterates over a stream; browsers without asynchronous iteration of streams have its reader.
 * @throws SilenceError if nothing arrives for `silentMs`
 */
export async function* chunksOf(
  stream: ReadableStream<Uint8Array>,
  silentMs?: number,
): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), silentMs)
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
