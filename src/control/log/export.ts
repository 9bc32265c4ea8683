/** Reads exports from files, which may be compressed with gzip, and writes snapshots into exports. */
import {
  closeSync,
  createReadStream,
  constants as fileConstants,
  openSync,
  readSync,
} from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { promisify } from 'node:util'
import { constants, createGunzip, gunzip, gunzipSync, gzip } from 'node:zlib'
import { UnknownEventTypeError } from '../../../events/index.ts'
import { withoutCredentials } from '../../ground/secrets/redact-credentials.ts'
import {
  ExportLines,
  maxLineBytes,
  type SnapshotPart,
  snapshotLine,
  snapshotMark,
} from './export-lines.ts'
import { LogError, type LogSnapshot, type Position, type Recorded } from './log.ts'

/** Whether the first line of a file is that of an export. */
export function isExport(path: string): boolean {
  try {
    const line = firstLine(path)
    // The export of a purged log begins with the snapshot that replaces earlier events.
    return line.startsWith(snapshotMark) || new ExportLines(path).read(line) !== undefined
  } catch (error) {
    // An event of a newer version is an event too.
    return error instanceof LogError && error.cause instanceof UnknownEventTypeError
  }
}

function firstLine(path: string): string {
  const bytes = headOf(path, maxLineBytes)
  const head = isGzip(bytes) ? beginningOf(bytes) : bytes
  const end = head.indexOf('\n')
  return head.toString('utf8', 0, end < 0 ? head.length : end)
}

function headOf(path: string, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  const file = openSync(path, fileConstants.O_RDONLY | fileConstants.O_NONBLOCK)
  try {
    return bytes.subarray(0, readSync(file, bytes, 0, length, 0))
  } finally {
    closeSync(file)
  }
}

const isGzip = (bytes: Buffer): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b

/** Decompresses the first bytes of a file; the rest may be missing. */
function beginningOf(bytes: Buffer): Buffer {
  const piece = bytes.subarray(0, 65_536)
  return gunzipSync(piece, {
    finishFlush: constants.Z_SYNC_FLUSH,
    maxOutputLength: 1_100 * piece.length,
  })
}

/** Characters of a snapshot in one line; a multiple of 4, so that each part is Base64 by itself. */
const partLength = 512 * 1024

/** Maximum bytes of a snapshot after decompression. */
const maxSnapshotBytes = 512 * 1024 * 1024

/**
 * Returns the JSON of a stored state, without the credentials that headers of the configuration set.
 * @throws LogError `corrupt` if it is not JSON
 */
export function exportedState({ position, chunks }: LogSnapshot): Buffer {
  try {
    const state: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return Buffer.from(JSON.stringify(withoutCredentials(state)))
  } catch (cause) {
    throw new LogError('corrupt', `the snapshot at position ${position} is damaged`, { cause })
  }
}

/** The lines of a snapshot in an export. */
export async function snapshotLines(snapshot: LogSnapshot): Promise<string[]> {
  const { position, foldVersion } = snapshot
  const state = exportedState(snapshot)
  const isRedacted = !state.equals(Buffer.concat(snapshot.chunks)) && { redacted: true as const }
  const packed = await promisify(gzip)(state, { level: constants.Z_BEST_SPEED })
  const text = packed.toString('base64')
  const parts = Math.ceil(text.length / partLength)
  return Array.from({ length: parts }, (_, index) => {
    const piece = text.slice(index * partLength, (index + 1) * partLength)
    return snapshotLine({
      position,
      foldVersion,
      part: index + 1,
      parts,
      ...isRedacted,
      gzip: piece,
    })
  })
}

interface ExportBeginning {
  /** Position of the first event; undefined if there is none. */
  readonly first: number | undefined
  /** The first snapshot, if earlier events are missing; empty if the export has none. */
  readonly parts: readonly SnapshotPart[]
}

/** Reads an export until it is known what it begins with. */
export async function exportBeginning(path: string): Promise<ExportBeginning> {
  const parts: SnapshotPart[] = []
  let first: number | undefined
  const note = (part: SnapshotPart) => {
    if (part.position === (parts[0]?.position ?? part.position)) parts.push(part)
  }
  for await (const { position } of readExport(path, note)) {
    first ??= position
    if (first === 1 || parts.length > 0) break
  }
  return { first, parts: first === 1 ? [] : parts }
}

/** Joins the parts of one snapshot. @throws LogError `corrupt` if a part is missing or damaged */
export async function joinSnapshot(parts: readonly SnapshotPart[]): Promise<LogSnapshot> {
  const [first] = parts
  const { position = 0, foldVersion = '' } = first ?? {}
  const isWhole = first?.parts === parts.length && parts.every(({ part }, at) => part === at + 1)
  try {
    if (!isWhole) throw new TypeError('a part is missing')
    const packed = Buffer.from(parts.map((part) => part.gzip).join(''), 'base64')
    const chunk = await promisify(gunzip)(packed, { maxOutputLength: maxSnapshotBytes })
    return { position: position as Position, foldVersion, chunks: [chunk] }
  } catch (cause) {
    throw new LogError('corrupt', `the snapshot at position ${position} is damaged`, { cause })
  }
}

/**
 * Reads the events of an export, and passes its snapshots to `onSnapshot`. Throws like `ExportLines`, and if
 * compressed data are damaged.
 */
export async function* readExport(
  path: string,
  onSnapshot?: (part: SnapshotPart) => void,
): AsyncGenerator<Recorded> {
  for await (const { recorded } of readExportLines(path, onSnapshot)) yield recorded
}

/** Does the same, with the number of each line, from 1. */
export async function* readExportLines(
  path: string,
  onSnapshot?: (part: SnapshotPart) => void,
): AsyncGenerator<{ readonly line: number; readonly recorded: Recorded }> {
  const lines = new ExportLines(path, undefined, onSnapshot)
  for await (const text of linesOf(path)) {
    const recorded = lines.read(text)
    if (recorded !== undefined) yield { line: lines.line, recorded }
  }
}

/** The lines of a file. @throws LogError `foreign` if a line is too long */
async function* linesOf(path: string): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  for await (const piece of piecesOf(path)) {
    const lines = decoder.write(piece).split('\n')
    lines[0] = rest + lines[0]
    rest = lines.pop() ?? ''
    if (rest.length > maxLineBytes) {
      throw new LogError('foreign', `${path} has a line of more than ${maxLineBytes} bytes`)
    }
    yield* lines
  }
  rest += decoder.end()
  if (rest !== '') yield rest
}

async function* piecesOf(path: string): AsyncGenerator<Buffer> {
  const file = createReadStream(path)
  if (!isGzip(headOf(path, 2))) return yield* file
  const unpacked = createGunzip()
  file.once('error', (error) => unpacked.destroy(error))
  try {
    yield* file.pipe(unpacked)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new LogError('foreign', `${path} cannot be decompressed: ${why}`, { cause })
  }
}
