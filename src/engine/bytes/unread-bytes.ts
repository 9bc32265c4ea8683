const nothing = Buffer.alloc(0)
/** Least room for bytes that are joined. */
const joinedSize = 1024

/**
 * Bytes of a connection that have arrived and are not read yet. They are used where they lie as
 * long as that lasts, and copied when they must outlive the read that brought them.
 */
export class UnreadBytes {
  bytes: Buffer = nothing
  start = 0
  end = 0

  get size(): number {
    return this.end - this.start
  }

  /** Takes what has arrived, behind what waits. */
  add(bytes: Buffer, start: number, end: number): void {
    if (this.start < this.end) {
      this.#append(bytes, start, end)
      return
    }
    this.bytes = bytes
    this.start = start
    this.end = end
  }

  /** The same, for bytes that will be overwritten. */
  copy(bytes: Buffer, start: number, end: number): void {
    if (end > start) this.#append(bytes, start, end)
  }

  /** All that waits; nothing does afterwards. */
  take(): Buffer {
    const taken = this.bytes.subarray(this.start, this.end)
    this.clear()
    return taken
  }

  /** These bytes are about to be overwritten: copies what is left of them. */
  keep(bytes: Buffer): void {
    if (this.bytes !== bytes) return
    const { size } = this
    this.bytes = size === 0 ? nothing : Buffer.from(bytes.subarray(this.start, this.end))
    this.start = 0
    this.end = size
  }

  clear(): void {
    this.bytes = nothing
    this.start = 0
    this.end = 0
  }

  /** In place where bytes were joined before and there is room, so that small pieces stay cheap. */
  #append(bytes: Buffer, start: number, end: number): void {
    const more = end - start
    if (this.bytes.length - this.end < more) {
      const { size } = this
      const joined = Buffer.allocUnsafeSlow(Math.max(joinedSize, 2 * (size + more)))
      this.bytes.copy(joined, 0, this.start, this.end)
      this.bytes = joined
      this.start = 0
      this.end = size
    }
    bytes.copy(this.bytes, this.end, start, end)
    this.end += more
  }
}
