/**
 * A ring of files in a folder with a bounded size. Blocks are appended to the newest file, and the
 * oldest files are deleted. Only one block is written at a time, and callers never wait: they check
 * `isBusy` before they append.
 */
import { close, open, readdirSync, readFileSync, statSync, unlink, write } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../ground/base/make-folder.ts'

interface RingOptions {
  readonly folder: string
  /** Prefix of the file names. Rings with different names can share a folder. */
  readonly name: string
  readonly mostBytes: number
}

/** Number of files of a full ring. Only whole files are deleted. */
const fullFiles = 8
/** Each start begins a file, so that a ring may have more files that are shorter. */
const maxFiles = 1_024
const extension = '.decisions'

/** Returns the path of the key of the digests in the records of a folder. */
export const digestKeyPath = (folder: string): string => join(folder, 'digest.key')

/** Reads the key of the digests in the records from their folder. Returns undefined if there is no key file. */
export function recordKeyOf(folder: string): Uint8Array | undefined {
  try {
    return readFileSync(digestKeyPath(folder))
  } catch {
    return undefined
  }
}

/** The names of a ring sort by age. */
const fileName = (ring: string, number: number): string =>
  `${ring}-${String(number).padStart(10, '0')}${extension}`

/** Lists the files of decisions in a folder, oldest first within each ring. */
export function decisionFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((entry) => entry.endsWith(extension))
    .sort()
}

interface RingFile {
  readonly number: number
  bytes: number
}

export class FileRing {
  /** Why the last write failed; undefined while writes succeed. */
  problem: string | undefined
  readonly #folder: string
  readonly #name: string
  readonly #fileBytes: number
  readonly #mostBytes: number
  /** The files that exist, oldest first. */
  readonly #files: RingFile[]
  #fd: number | undefined
  #written = 0
  #isBusy = false
  #onIdle: (() => void) | undefined

  /** Creates the folder if it does not exist. @throws the system's error */
  constructor({ folder, name, mostBytes }: RingOptions) {
    makeFolder(folder)
    this.#folder = folder
    this.#name = name
    this.#mostBytes = mostBytes
    this.#fileBytes = Math.floor(mostBytes / fullFiles)
    this.#files = decisionFiles(folder)
      .filter((entry) => entry.startsWith(`${name}-`))
      .map((entry) => ({
        number: Number(entry.slice(name.length + 1, -extension.length)),
        bytes: statSync(join(folder, entry), { throwIfNoEntry: false })?.size ?? 0,
      }))
      .filter(({ number }) => Number.isSafeInteger(number))
  }

  get isBusy(): boolean {
    return this.#isBusy
  }

  /**
   * Appends a framed block. The caller must not change the bytes until `done` is called with the result.
   * Only one block is written at a time.
   */
  append(bytes: Buffer, length: number, done: (isWritten: boolean) => void): void {
    this.#isBusy = true
    this.#withFile(length, (fd) => {
      if (fd === undefined) this.#finish(false, done)
      else this.#write(fd, bytes, 0, length, done)
    })
  }

  #write(fd: number, bytes: Buffer, from: number, length: number, done: (ok: boolean) => void) {
    write(fd, bytes, from, length - from, (error, written) => {
      if (error !== null) {
        // Readers skip the incomplete block.
        this.problem = error.message
        this.#count(length)
        this.#closeFile()
        this.#finish(false, done)
      } else if (from + written < length) this.#write(fd, bytes, from + written, length, done)
      else {
        this.problem = undefined
        this.#count(length)
        this.#finish(true, done)
      }
    })
  }

  #count(bytes: number): void {
    this.#written += bytes
    const newest = this.#files.at(-1)
    if (newest !== undefined) newest.bytes = this.#written
  }

  #finish(isWritten: boolean, done: (isWritten: boolean) => void): void {
    this.#isBusy = false
    done(isWritten)
    this.#onIdle?.()
    this.#onIdle = undefined
  }

  /** Resolves when no write is under way. */
  idle(): Promise<void> {
    if (!this.#isBusy) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Calls `use` with a file that has room for `length` bytes, or with undefined if there is none. */
  #withFile(length: number, use: (fd: number | undefined) => void): void {
    if (this.#fd !== undefined && this.#written + length <= this.#fileBytes) {
      use(this.#fd)
      return
    }
    this.#closeFile()
    this.#openFile((this.#files.at(-1)?.number ?? 0) + 1, use)
  }

  #openFile(number: number, use: (fd: number | undefined) => void): void {
    open(join(this.#folder, fileName(this.#name, number)), 'ax', 0o600, (error, fd) => {
      // Another process that uses the same folder has created the file.
      if (error?.code === 'EEXIST') {
        this.#openFile(number + 1, use)
        return
      }
      if (error !== null) {
        this.problem = error.message
        use(undefined)
        return
      }
      this.#fd = fd
      this.#written = 0
      this.#files.push({ number, bytes: 0 })
      this.#dropOldest(() => use(fd))
    })
  }

  /** Deletes files until there is room for the one that was opened. */
  #dropOldest(then: () => void): void {
    const bytes = this.#files.reduce((sum, file) => sum + file.bytes, this.#fileBytes)
    if (this.#files.length <= 1 || (bytes <= this.#mostBytes && this.#files.length <= maxFiles)) {
      then()
      return
    }
    const { number = 0 } = this.#files.shift() ?? {}
    unlink(join(this.#folder, fileName(this.#name, number)), () => this.#dropOldest(then))
  }

  #closeFile(): void {
    if (this.#fd === undefined) return
    close(this.#fd, () => {})
    this.#fd = undefined
  }

  async close(): Promise<void> {
    await this.idle()
    this.#closeFile()
  }
}
