/**
 * The last good configuration on disk, so that a proxy serves after a restart with no controller at
 * all. One file, written beside and renamed; it holds values of secrets, so only its owner reads it.
 *
 * ```
 *   one line of JSON: format, gateway, when, lengths, SHA-256 of what follows
 *   Delta message: what is in force
 *   Delta message: newer versions that were refused
 * ```
 */
import { createHash, hash } from 'node:crypto'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../../base/make-folder.ts'
import {
  assembleDelta,
  type EncodedResource,
  upsertedLength,
  writeUpserted,
} from '../../wire/encode.ts'
import { FieldWriter } from '../../wire/frames.ts'
import { splitDelta, type VersionedPiece } from '../../wire/pieces.ts'
import type { StoredPieces } from './received-state.ts'

const fileName = 'last-good'
/** Changes with every change of the file's form; a file of another form counts as none. */
const format = 1

interface Header {
  readonly format: number
  readonly gateway: string
  readonly saved: string
  readonly inForce: number
  readonly refused: number
  readonly digest: string
}

interface Loaded {
  readonly inForce: readonly VersionedPiece[]
  readonly refused: readonly VersionedPiece[]
  /** RFC 3339. */
  readonly saved: string
}

/** Why a file is not used. */
class Unusable extends Error {}

function readHeader(bytes: Buffer): { header: Header; rest: Buffer } {
  const end = bytes.indexOf('\n')
  if (end < 0) throw new Unusable('it has no header')
  const header = JSON.parse(bytes.toString('utf8', 0, end)) as Header
  if (header.format !== format) throw new Unusable(`its format is ${header.format}, not ${format}`)
  return { header, rest: bytes.subarray(end + 1) }
}

function parse(bytes: Buffer, gateway: string): Loaded {
  const { header, rest } = readHeader(bytes)
  const { inForce, refused, digest, saved } = header
  if (rest.length !== inForce + refused || hash('sha256', rest) !== digest) {
    throw new Unusable('its digest does not fit its content')
  }
  if (header.gateway !== gateway) throw new Unusable(`it is of Gateway ${header.gateway}`)
  return {
    inForce: splitDelta(rest.subarray(0, inForce)),
    refused: splitDelta(rest.subarray(inForce)),
    saved,
  }
}

const partBytes = 64 * 1024

/**
 * A Delta message part by part: one after the other they are the message. Each is good until the
 * next is asked for; a file as large as the configuration, written again and again, is to leave no
 * garbage.
 */
function* deltaParts(pieces: readonly EncodedResource[]): Iterable<Uint8Array> {
  const scratch = new Uint8Array(partBytes)
  const writer = new FieldWriter(scratch)
  for (const piece of pieces) {
    const length = upsertedLength(piece)
    if (writer.length + length > partBytes) {
      yield scratch.subarray(0, writer.length)
      writer.rewind()
    }
    if (length > partBytes) yield assembleDelta(0, [piece], [])
    else writeUpserted(writer, piece)
  }
  yield scratch.subarray(0, writer.length)
}

export class LastGood {
  readonly #folder: string
  readonly #path: string
  readonly #gateway: string

  /**
   * `gateway` is `namespace/name`. Makes the folder, mode 0700.
   * @throws the system's error where that cannot be done.
   */
  constructor(folder: string, gateway: string) {
    makeFolder(folder, 0o700)
    this.#folder = folder
    this.#path = join(folder, fileName)
    this.#gateway = gateway
  }

  /**
   * What was kept, or undefined where nothing was. A file that cannot be used is moved aside and
   * told to `onNotice`.
   */
  load(onNotice: (text: string) => void): Loaded | undefined {
    if (!existsSync(this.#path)) return undefined
    try {
      return parse(readFileSync(this.#path), this.#gateway)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const aside = this.#asidePath()
      renameSync(this.#path, aside)
      onNotice(`${this.#path} is not used (${reason}) and is now ${aside}`)
      return undefined
    }
  }

  #asidePath(): string {
    for (let n = 1; ; n++) {
      const path = `${this.#path}.aside-${n}`
      if (!existsSync(path)) return path
    }
  }

  /** Replaces the file in one step. Rejects with the system's error; the old file then stands. */
  async save({ inForce, refused }: StoredPieces, saved: string): Promise<void> {
    // Taken twice, rather than held in memory whole: it may be as large as the configuration.
    const digest = createHash('sha256')
    const lengths = [inForce, refused].map((pieces) => {
      let length = 0
      for (const bytes of deltaParts(pieces)) {
        digest.update(bytes)
        length += bytes.length
      }
      return length
    })
    const header: Header = {
      format,
      gateway: this.#gateway,
      saved,
      inForce: lengths[0] ?? 0,
      refused: lengths[1] ?? 0,
      digest: digest.digest('hex'),
    }
    const fresh = join(this.#folder, `${fileName}.new`)
    // An older one of a process that was killed may have any mode.
    await rm(fresh, { force: true })
    const file = await open(fresh, 'wx', 0o600)
    try {
      await file.writeFile(`${JSON.stringify(header)}\n`)
      for (const pieces of [inForce, refused]) {
        for (const bytes of deltaParts(pieces)) await file.writeFile(bytes)
      }
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(fresh, this.#path)
  }
}
