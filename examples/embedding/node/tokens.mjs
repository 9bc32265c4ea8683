// Token counts: a vocabulary goes in once, decompressed; then texts.

export class Vocabulary {
  /** @param {Uint8Array} file what `NAME.tokens.br` holds when brotli has been taken off it */
  constructor(core, file) {
    this.core = core
    // A block, not scratch: what is loaded takes 17 MB, which should not lie behind the file's own.
    const block = core.call.block_new(file.length + 16) >>> 0
    if (block === 0) throw new Error('no room for the vocabulary')
    core.bytes(block, block + file.length).set(file)
    const handle = core.call.tokens_load(block, file.length)
    core.call.block_free(block)
    this.handle = core.check(handle)
  }

  count(text) {
    const { core } = this
    return core.scoped(() =>
      core.check(core.call.tokens_count(this.handle, core.put(text), text.length)),
    )
  }

  /** The ids of the first `limit` tokens. */
  encode(text, limit) {
    const { core } = this
    return core.scoped(() => {
      const address = core.put(text)
      const out = core.alloc(limit * 4 + 16)
      const count = core.call.tokens_encode(this.handle, address, text.length, out, limit)
      const written = Math.min(core.check(count), limit)
      const { view } = core
      return Array.from({ length: written }, (_, index) => view.getUint32(out + index * 4, true))
    })
  }

  free() {
    this.core.call.tokens_free(this.handle)
  }
}
