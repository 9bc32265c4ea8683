// Regular expressions and masks.
import { utf8 } from './core.mjs'

/** A handle, or a code with the place in the pattern. */
export function compile(core, pattern) {
  return core.scoped(() => {
    const bytes = utf8(pattern)
    const handle = core.call.regex_compile(core.put(bytes), bytes.length, 0)
    return { handle, offset: core.call.last_error_offset() }
  })
}

/** All matches, as [start, end] in bytes. */
export function findAll(core, handle, text, limit = 1024) {
  return core.scoped(() => {
    const out = core.alloc(limit * 8)
    const address = core.put(text)
    const find = core.call.regex_find_all
    const count = core.check(find(handle, address, text.length, 0, out, limit))
    const { view } = core
    return Array.from({ length: count }, (_, index) => [
      view.getUint32(out + index * 8, true),
      view.getUint32(out + index * 8 + 4, true),
    ])
  })
}

/** `export` is regex_is_match or regex_full_match. */
export function test(core, name, handle, text) {
  return core.scoped(() => core.check(core.call[name](handle, core.put(text), text.length)) === 1)
}

export class Mask {
  constructor(core) {
    this.core = core
    this.set = core.check(core.call.mask_new())
  }

  /** A builtin by the abi's number: DETECT_*. */
  addBuiltin(builtin, replacement) {
    const { core } = this
    const bytes = utf8(replacement)
    core.scoped(() =>
      core.check(core.call.mask_add_builtin(this.set, builtin, core.put(bytes), bytes.length)),
    )
  }

  /** Masks a text that arrives in pieces; what comes out does not depend on where it is cut. */
  apply(pieces) {
    const { core } = this
    const stream = core.check(core.call.stream_new(this.set))
    let masked = ''
    const decoder = new TextDecoder()
    for (const [index, piece] of pieces.entries()) {
      const isEnd = index === pieces.length - 1
      const count = core.scoped(() =>
        core.check(core.call.stream_push(stream, core.put(piece), piece.length, isEnd ? 1 : 0)),
      )
      const start = core.call.stream_output(stream) >>> 0
      masked += decoder.decode(core.bytes(start, start + count).slice(), { stream: true })
    }
    core.call.stream_free(stream)
    return masked
  }
}
