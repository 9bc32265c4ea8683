/**
 * The last good configuration on disk, with which a proxy can start without a controller. The
 * file is replaced atomically. It contains secrets, so only its owner can read it.
 *
 * ```
 *   one line of JSON: format, gateway, time, lengths, SHA-256 of the rest
 *   Delta message: resources in force
 *   Delta message: newer versions that were refused
 * ```
 */
import { createHash, hash } from 'node:crypto'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  assembleDelta,
  type EncodedResource,
  upsertedLength,
  writeUpserted,
} from '../../../control/wire/encode.ts'
import { FieldWriter } from '../../../control/wire/frames.ts'
import { splitDelta, type VersionedPiece } from '../../../control/wire/pieces.ts'
import { makeFolder } from '../../../ground/base/make-folder.ts'
import type { StoredPieces } from './received-state.ts'

const fileName = 'last-good'
/** Version of the file format. Files of other versions are ignored. */
const format = 1

interface Header {
  readonly format: number
  readonly gateway: string
  readonly saved: string
  readonly inForce: number
  readonly refused: number
  readonly digest: string
}

interface LoadedConfig {
  readonly inForce: readonly VersionedPiece[]
  readonly refused: readonly VersionedPiece[]
  /** When the file was saved, in RFC 3339 format. */
  readonly saved: string
}

class UnusableFile extends Error {}

function readHeader(bytes: Buffer): { header: Header; rest: Buffer } {
  const end = bytes.indexOf('\n')
  if (end < 0) throw new UnusableFile('it has no header')
  const header = JSON.parse(bytes.toString('utf8', 0, end)) as Header
  if (header.format !== format)
    throw new UnusableFile(`its format is ${header.format}, not ${format}`)
  return { header, rest: bytes.subarray(end + 1) }
}

function parse(bytes: Buffer, gateway: string): LoadedConfig {
  const { header, rest } = readHeader(bytes)
  const { inForce, refused, digest, saved } = header
  if (rest.length !== inForce + refused || hash('sha256', rest) !== digest) {
    throw new UnusableFile('its digest does not fit its content')
  }
  if (header.gateway !== gateway) throw new UnusableFile(`it is of Gateway ${header.gateway}`)
  return {
    inForce: splitDelta(rest.subarray(0, inForce)),
    refused: splitDelta(rest.subarray(inForce)),
    saved,
  }
}

const partBytes = 64 * 1024

/** Yields a Delta message in parts. All parts use the same buffer, so a part is valid until the next one. */
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

  /** `gateway` is `namespace/name`. Creates the folder with mode 0700. @throws the error of the system */
  constructor(folder: string, gateway: string) {
    makeFolder(folder, 0o700)
    this.#folder = folder
    this.#path = join(folder, fileName)
    this.#gateway = gateway
  }

  /** Loads the file, if there is one. An unusable file is renamed and reported to `onNotice`. */
  load(onNotice: (text: string) => void): LoadedConfig | undefined {
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

  /**
   * Replaces the file atomically. If that fails, the old file stays; rejects with the error of the system.
   */
  async save({ inForce, refused }: StoredPieces, saved: string): Promise<void> {
    // The messages are encoded twice instead of being kept in memory, because they may be large.
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
    // A process that was killed may have left a file with another mode.
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
