/** Reads the files of a source configuration. */
import { createReadStream, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseManifest } from '../../control/watch/manifest.ts'
import { formatProblem } from '../../control/watch/source-problem.ts'
import type { SourceDocument } from './field.ts'

/** Thrown if input cannot be read or parsed. The message names the file and, if known, the line. */
export class SourceError extends Error {}

/** All files of a conversion may have this many bytes together. */
const maxBytes = 16 * 1024 * 1024
const maxFiles = 10_000
const fileName = /\.(ya?ml|json)$/i

/**
 * Reads a file, all YAML and JSON files of a folder and its subfolders, or standard input (`-`).
 * @throws SourceError
 */
export async function readSourceFiles(paths: readonly string[]): Promise<SourceDocument[]> {
  const files = paths.flatMap((path) => (path === '-' ? ['-'] : filesBelow(path)))
  let left = maxBytes
  const documents: SourceDocument[] = []
  for (const file of files) {
    const bytes = await readBytes(file, left)
    left -= bytes.length
    documents.push(...parseSource(bytes, file === '-' ? '<stdin>' : file))
  }
  return documents
}

/** Parses the documents of a file. `name` of the file is for places. @throws SourceError */
export function parseSource(bytes: Uint8Array, name: string): SourceDocument[] {
  const outcome = parseManifest(bytes, name)
  if (!outcome.ok) throw new SourceError(outcome.problems.map(formatProblem).join('\n'))
  return outcome.value.map(({ value, problems: [problem] = [], placeOf }) => {
    if (problem !== undefined) {
      const { line, column } = placeOf(problem.path)
      throw new SourceError(`${name}:${line}:${column}: ${problem.path}: ${problem.message}`)
    }
    if (isTooDeep(value)) {
      const { line, column } = placeOf('')
      throw new SourceError(`${name}:${line}:${column}: is nested deeper than ${maxDepth} levels`)
    }
    return { file: name, value, placeOf }
  })
}

const maxDepth = 64

/** Goes down first, so that a value that contains itself is found at once. */
function isTooDeep(root: unknown): boolean {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value: root, depth: 0 }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next
    if (typeof value !== 'object' || value === null) continue
    if (depth >= maxDepth) return true
    for (const child of Object.values(value)) open.push({ value: child, depth: depth + 1 })
  }
  return false
}

function filesBelow(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path]
    const found = readdirSync(path, { recursive: true, encoding: 'utf8' })
    const files = found.filter((name) => fileName.test(name)).sort()
    if (files.length > maxFiles) throw new SourceError(`${path}: has more than ${maxFiles} files`)
    if (files.length === 0) throw new SourceError(`${path}: has no .yaml, .yml or .json file`)
    return files.map((name) => join(path, name))
  } catch (error) {
    throw toSourceError(path, error)
  }
}

/** Reads at most `limit` bytes. */
async function readBytes(file: string, limit: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let total = 0
  try {
    for await (const piece of file === '-' ? process.stdin : createReadStream(file)) {
      total += piece.length
      if (total > limit) throw new SourceError(`the input has more than ${maxBytes} bytes`)
      pieces.push(piece)
    }
  } catch (error) {
    throw toSourceError(file, error)
  }
  return Buffer.concat(pieces)
}

function toSourceError(path: string, error: unknown): SourceError {
  if (error instanceof SourceError) return error
  const { code = 'cannot be read' } = error as NodeJS.ErrnoException
  return new SourceError(code === 'ENOENT' ? `${path} does not exist` : `${path}: ${code}`)
}
