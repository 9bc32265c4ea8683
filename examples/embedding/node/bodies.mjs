// Chunked bodies: bytes in pieces, spans of data out.
import { fromLatin1 } from './core.mjs'

/** What there is of a body that arrives cut at `cuts`, and the code of the last call. */
export function readBody(core, bytes, cuts, trailerLimit = 256) {
  const { constants: abi } = core
  return core.scoped(() => {
    const body = core.alloc(abi.BODY_SIZE)
    const input = core.put(bytes)
    const seen = { code: abi.CHUNKS_MORE, data: '', trailers: '', rest: '', flags: [] }
    core.check(core.call.chunks_start(body, trailerLimit))
    let at = input
    for (const cut of [...cuts, bytes.length]) {
      do {
        seen.code = core.call.chunks_read(body, at, input + cut)
        if (seen.code < 0) return seen
        const { view } = core
        const word = (offset) => view.getInt32(body + offset, true)
        const text = (offset) => fromLatin1(core.bytes(word(offset), word(offset + 4)))
        for (let index = 0; index < word(abi.BODY_SPAN_COUNT); index++) {
          seen.data += text(abi.BODY_SPANS + index * 8)
        }
        if (word(abi.BODY_TRAILER) >= 0) seen.trailers += text(abi.BODY_TRAILER)
        at = word(abi.BODY_CONSUMED)
        seen.flags = Object.keys(abi)
          .filter((name) => name.startsWith('BODY_HAS_') && word(abi.BODY_FLAGS) & abi[name])
          .map((name) => name.slice('BODY_HAS_'.length))
          .sort()
      } while (seen.code === abi.CHUNKS_AGAIN)
      if (seen.code === abi.CHUNKS_END) break
    }
    seen.rest = fromLatin1(bytes.subarray(at - input))
    return seen
  })
}
