/** Where the blocks of one period are stored: a bounded list of files, or of buffers in memory. */
import { appendFileSync, readdirSync, readFileSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../ground/base/make-folder.ts'

/** The name of a segment is the time of its first block. */
export interface Segments {
  /** The start times of all segments in order. */
  readonly starts: readonly number[]
  /** Appends to the segment, which is created if it does not exist. @throws the system's error */
  append(start: number, bytes: Buffer): void
  read(start: number): Buffer
  bytesOf(start: number): number
  remove(start: number): void
}

export class MemorySegments implements Segments {
  readonly #segments = new Map<number, Buffer[]>()

  get starts(): readonly number[] {
    return [...this.#segments.keys()].sort((a, b) => a - b)
  }

  append(start: number, bytes: Buffer): void {
    const segment = this.#segments.get(start)
    if (segment === undefined) this.#segments.set(start, [bytes])
    else segment.push(bytes)
  }

  read(start: number): Buffer {
    return Buffer.concat(this.#segments.get(start) ?? [])
  }

  bytesOf(start: number): number {
    return (this.#segments.get(start) ?? []).reduce((sum, { length }) => sum + length, 0)
  }

  remove(start: number): void {
    this.#segments.delete(start)
  }
}

const extension = '.series'

/** Files such as `minutes-1764430000000.series`. The folder may have the segments of several periods. */
export class FileSegments implements Segments {
  readonly #folder: string
  readonly #name: string
  readonly #bytes = new Map<number, number>()

  /** Creates the folder if it does not exist. @throws the system's error */
  constructor(folder: string, name: string) {
    makeFolder(folder, 0o700)
    this.#folder = folder
    this.#name = name
    for (const file of readdirSync(folder)) {
      if (!file.startsWith(`${name}-`) || !file.endsWith(extension)) continue
      const start = Number(file.slice(name.length + 1, -extension.length))
      if (Number.isSafeInteger(start)) this.#bytes.set(start, statSync(join(folder, file)).size)
    }
  }

  get starts(): readonly number[] {
    return [...this.#bytes.keys()].sort((a, b) => a - b)
  }

  #path(start: number): string {
    return join(this.#folder, `${this.#name}-${start}${extension}`)
  }

  append(start: number, bytes: Buffer): void {
    appendFileSync(this.#path(start), bytes, { mode: 0o600 })
    this.#bytes.set(start, this.bytesOf(start) + bytes.length)
  }

  /** A file that was removed by hand is empty. */
  read(start: number): Buffer {
    try {
      return readFileSync(this.#path(start))
    } catch {
      return Buffer.alloc(0)
    }
  }

  bytesOf(start: number): number {
    return this.#bytes.get(start) ?? 0
  }

  remove(start: number): void {
    this.#bytes.delete(start)
    try {
      unlinkSync(this.#path(start))
    } catch {
      // It was removed by hand.
    }
  }
}
