const nothing = Buffer.alloc(0)
/** Minimum size of a buffer in which bytes are joined. */
const joinedSize = 1024

/**
 * Bytes of a connection that have arrived but are not read yet. They are used in place during the read
 * that brought them, and copied if they must outlive it.
 */
export class UnreadBytes {
  bytes: Buffer = nothing
  start = 0
  end = 0

  get size(): number {
    return this.end - this.start
  }

  /** Adds bytes that have arrived after those that are unread. */
  add(bytes: Buffer, start: number, end: number): void {
    if (this.start < this.end) {
      this.#append(bytes, start, end)
      return
    }
    this.bytes = bytes
    this.start = start
    this.end = end
  }

  /** Like `add`, for bytes that will be overwritten. */
  copy(bytes: Buffer, start: number, end: number): void {
    if (end > start) this.#append(bytes, start, end)
  }

  /** Removes and returns all unread bytes. */
  take(): Buffer {
    const taken = this.bytes.subarray(this.start, this.end)
    this.clear()
    return taken
  }

  /** Copies the unread part of `bytes`, because `bytes` is about to be overwritten. */
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

  /** Appends in place if there is room, so that small pieces stay cheap. */
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
