/**
 * Writes and reads one group of a bucket as a block of bytes. Numbers are of variable length, and names are written
 * only once: a block refers to the names of earlier blocks, back to the last one that begins a new list. All
 * positions are counted from the begin of the list.
 *
 *   flags, start and duration in ms, group, new names, and for each series: name, number of counts, (name, value)…
 */
import { closeFrame, frameBytes } from '../decisions/frame.ts'
import { type SeriesOfGroup, type StoredGroup, storedGroups } from './bucket.ts'

/** A new list of names starts after this many blocks, so that a damaged block makes at most these unreadable. */
const blocksPerList = 512
const newListFlag = 1
/** Values that are not counts, such as costs, follow this number as 64 bits. */
const float = 1

class Writer {
  bytes = Buffer.allocUnsafe(1 << 12)
  at = frameBytes

  #reserve(length: number): void {
    if (this.at + length <= this.bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(2 * this.bytes.length, this.at + length))
    this.bytes.copy(larger, 0, 0, this.at)
    this.bytes = larger
  }

  number(value: number): void {
    this.#reserve(10)
    let rest = value
    while (rest >= 128) {
      this.bytes[this.at++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    this.bytes[this.at++] = rest
  }

  text(text: string): void {
    const length = Buffer.byteLength(text)
    this.number(length)
    this.#reserve(length)
    this.at += this.bytes.write(text, this.at)
  }

  /** Counts are even numbers, so that `float` is none of them. */
  value(value: number): void {
    if (Number.isSafeInteger(2 * value) && value >= 0) this.number(2 * value)
    else {
      this.number(float)
      this.#reserve(8)
      this.at = this.bytes.writeDoubleLE(value, this.at)
    }
  }
}

export class BlockWriter {
  readonly #ids = new Map<string, number>()
  #blocks = 0

  /** Makes the next block begin a new list of names: it is the first of a file, or an earlier one was lost. */
  beginList(): void {
    this.#ids.clear()
    this.#blocks = 0
  }

  /** Returns the block with its frame. */
  write(startMs: number, endMs: number, group: StoredGroup, series: SeriesOfGroup): Buffer {
    if (this.#blocks >= blocksPerList) this.beginList()
    const writer = new Writer()
    writer.number(this.#blocks++ === 0 ? newListFlag : 0)
    writer.number(startMs)
    writer.number(endMs - startMs)
    writer.number(storedGroups.indexOf(group))
    this.#names(writer, series)
    writer.number(series.size)
    for (const [name, counts] of series) {
      writer.number(this.#ids.get(name) ?? 0)
      writer.number(counts.size)
      for (const [count, value] of counts) {
        writer.number(this.#ids.get(count) ?? 0)
        writer.value(value)
      }
    }
    closeFrame(writer.bytes, writer.at)
    return writer.bytes.subarray(0, writer.at)
  }

  #names(writer: Writer, series: SeriesOfGroup): void {
    const fresh: string[] = []
    const add = (name: string) => {
      if (this.#ids.has(name)) return
      this.#ids.set(name, this.#ids.size)
      fresh.push(name)
    }
    for (const [name, counts] of series) {
      add(name)
      for (const count of counts.keys()) add(count)
    }
    writer.number(fresh.length)
    for (const name of fresh) writer.text(name)
  }
}

/** Receives each count of a group that is read. */
export interface BlockVisitor {
  /** Returns whether to read the counts of the block. */
  block(startMs: number, endMs: number, group: StoredGroup): boolean
  series(name: string): void
  count(name: string, value: number): void
}

/** Thrown if a block does not have the form that the writer gives it. */
class BlockError extends Error {}

export class BlockReader {
  #names: string[] | undefined
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0

  /** After a damaged block, all others are skipped up to the next list of names. */
  skipList(): void {
    this.#names = undefined
  }

  /** Reads a block; one that cannot be read is skipped. */
  read(bytes: Buffer, visitor: BlockVisitor): void {
    this.#bytes = bytes
    this.#at = 0
    try {
      this.#read(visitor)
    } catch (error) {
      if (!(error instanceof BlockError)) throw error
      this.skipList()
    }
  }

  #read(visitor: BlockVisitor): void {
    if (this.#number() === newListFlag) this.#names = []
    const names = this.#names
    if (names === undefined) return
    const startMs = this.#number()
    const endMs = startMs + this.#number()
    const group = storedGroups[this.#number()]
    for (let left = this.#number(); left > 0; left--) names.push(this.#text())
    if (group === undefined || !visitor.block(startMs, endMs, group)) return
    for (let left = this.#number(); left > 0; left--) {
      visitor.series(names[this.#number()] ?? '')
      for (let counts = this.#number(); counts > 0; counts--) {
        const name = names[this.#number()] ?? ''
        visitor.count(name, this.#value())
      }
    }
  }

  #number(): number {
    let value = 0
    for (let scale = 1; scale < 2 ** 56; scale *= 128) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) break
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
    throw new BlockError()
  }

  #value(): number {
    const value = this.#number()
    if (value !== float) return value / 2
    this.#at += 8
    if (this.#at > this.#bytes.length) throw new BlockError()
    return this.#bytes.readDoubleLE(this.#at - 8)
  }

  #text(): string {
    const length = this.#number()
    this.#at += length
    if (this.#at > this.#bytes.length) throw new BlockError()
    return this.#bytes.toString('utf8', this.#at - length, this.#at)
  }
}
