/** Reads exports from files. */
import { closeSync, createReadStream, openSync, readSync } from 'node:fs'
import { createInterface } from 'node:readline'
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
  const bytes = Buffer.alloc(maxLineBytes)
  const file = openSync(path, 'r')
  try {
    const length = readSync(file, bytes, 0, bytes.length, 0)
    const end = bytes.subarray(0, length).indexOf('\n')
    return bytes.toString('utf8', 0, end < 0 ? length : end)
  } finally {
    closeSync(file)
  }
}

/** Reads an export. Throws like `ExportLines`. */
export async function* readExport(path: string): AsyncGenerator<Recorded> {
  const lines = new ExportLines(path)
  for await (const text of createInterface({ input: createReadStream(path, 'utf8') })) {
    const recorded = lines.read(text)
    if (recorded !== undefined) yield recorded
  }
}
