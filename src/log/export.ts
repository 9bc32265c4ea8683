/** Reads exports from files, which may be compressed with gzip. */
import { closeSync, createReadStream, openSync, readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { constants, createGunzip, gunzipSync } from 'node:zlib'
import { UnknownEventTypeError } from '../../events/index.ts'
import { ExportLines, maxLineBytes } from './export-lines.ts'
import { LogError, type Recorded } from './log.ts'

/** Whether the first line of a file is that of an export. */
export function isExport(path: string): boolean {
  try {
    return new ExportLines(path).read(firstLine(path)) !== undefined
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
  const file = openSync(path, 'r')
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

/** Reads an export. Throws like `ExportLines`, and if compressed data are damaged. */
export async function* readExport(path: string): AsyncGenerator<Recorded> {
  const lines = new ExportLines(path)
  for await (const text of linesOf(path)) {
    const recorded = lines.read(text)
    if (recorded !== undefined) yield recorded
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
