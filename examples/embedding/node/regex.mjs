// Regular expressions and masks.
import { join, utf8 } from './core.mjs'

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

  addWords(words, replacement) {
    const { core } = this
    const [list, bytes] = [utf8(words.join('\n')), utf8(replacement)]
    core.scoped(() => {
      const [from, text] = [core.put(list), core.put(bytes)]
      core.check(core.call.mask_add_words(this.set, from, list.length, text, bytes.length))
    })
  }

  addPattern(pattern, replacement) {
    const { core } = this
    const { handle, offset } = compile(core, pattern)
    if (handle < 0) throw new Error(`code ${handle} at ${offset} of ${pattern}`)
    const bytes = utf8(replacement)
    core.scoped(() =>
      core.check(core.call.mask_add(this.set, handle, core.put(bytes), bytes.length)),
    )
    // The set keeps it.
    core.call.regex_free(handle)
  }

  /**
   * Masks bytes that arrive cut at `cuts`; what comes out does not depend on them. A code of
   * `stream_push` means that nothing more of the text may pass.
   */
  apply(bytes, cuts = []) {
    const { core } = this
    const stream = core.check(core.call.stream_new(this.set))
    const parts = []
    let from = 0
    for (const [index, end] of [...cuts, bytes.length].entries()) {
      const piece = bytes.subarray(from, end)
      const isEnd = index === cuts.length
      const count = core.scoped(() =>
        core.check(core.call.stream_push(stream, core.put(piece), piece.length, isEnd ? 1 : 0)),
      )
      const start = core.call.stream_output(stream) >>> 0
      parts.push(core.bytes(start, start + count).slice())
      from = end
    }
    core.call.stream_free(stream)
    return join(parts)
  }
}
